// A small shop under pyroscope-go: slowFunction does three times the work of fastFunction. Prints what it measured itself.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/grafana/pyroscope-go"
)

//go:noinline
func slowFunction(n int) (total float64) {
	for i := 1; i < 3*n; i++ {
		total += float64(i%1000) / float64(i)
	}
	return total
}

//go:noinline
func fastFunction(n int) (total float64) {
	for i := 1; i < n; i++ {
		total += float64(i%1000) / float64(i)
	}
	return total
}

var sink float64

// used is the CPU time of this process, in seconds.
func used() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func measured(work func(int) float64, n int) float64 {
	start := used()
	sink += work(n)
	return used() - start
}

func main() {
	seconds, err := strconv.ParseFloat(os.Getenv("SECONDS"), 64)
	if err != nil {
		panic(err)
	}
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName:   os.Args[1],
		ServerAddress:     os.Getenv("FLAMEGATE_URL"),
		BasicAuthUser:     "live",
		BasicAuthPassword: os.Getenv("FLAMEGATE_KEY"),
		Tags:              map[string]string{"env": "live"},
		UploadRate:        5 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	var slow, fast float64
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	// At least four seconds of CPU, on a machine that has other things to do.
	for time.Now().Before(end) || slow+fast < 4 && time.Now().Before(end.Add(30*time.Second)) {
		fast += measured(fastFunction, 20_000_000)
		slow += measured(slowFunction, 20_000_000)
	}
	if err := profiler.Stop(); err != nil {
		panic(err)
	}
	text, _ := json.Marshal(map[string]float64{"main.slowFunction": slow, "main.fastFunction": fast})
	fmt.Println(string(text))
}

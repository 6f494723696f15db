// Renders a chart with Helm's own engine: values from standard input, a JSON list with one object for each rendering; to standard
// output a JSON list with, for each, its files by name, or what Helm said was wrong with the values.
package main

import (
	"encoding/json"
	"os"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

type rendering struct {
	Files map[string]string `json:"files"`
	Error string            `json:"error"`
}

func render(c *chart.Chart, values map[string]interface{}) rendering {
	release := chartutil.ReleaseOptions{Name: "lab", Namespace: "profiles", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return rendering{Error: err.Error()}
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return rendering{Error: err.Error()}
	}
	return rendering{Files: files}
}

func main() {
	var wanted []map[string]interface{}
	var out []rendering

	c, err := loader.Load(os.Args[1])
	if err == nil {
		err = json.NewDecoder(os.Stdin).Decode(&wanted)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	for _, values := range wanted {
		out = append(out, render(c, values))
	}
	json.NewEncoder(os.Stdout).Encode(out)
}

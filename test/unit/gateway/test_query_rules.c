/* Own-code rules on frames as the agents of each language send them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/query/rules.h"

static void test_frames(void **state)
{
    static const struct {
        const char *function, *file, *mapping, *spy;
        enum language language;
        enum owner owner;
    } list[] = {
        {"main.slowFunction", "goshop/main.go", "/srv/app/shop", "gospy", LANG_GO, OWNER_OWN},
        {"main.main.func4", "goshop/main.go", "/srv/app/shop", "", LANG_GO, OWNER_OWN},
        {"busy.work", "busy/busy_test.go", "", "", LANG_GO, OWNER_OWN},
        {"example.org/shop/cart.(*Cart).Price", "example.org/shop/cart/cart.go", "", "", LANG_GO, OWNER_OWN},
        {"runtime.mallocgc", "runtime/malloc.go", "/srv/app/shop", "", LANG_GO, OWNER_RUNTIME},
        {"runtime/pprof.Do", "runtime/pprof/runtime.go", "", "", LANG_GO, OWNER_RUNTIME},
        {"runtime.goexit.abi0", "", "", "", LANG_GO, OWNER_RUNTIME},
        {"internal/sync.(*Mutex).Lock", "internal/sync/mutex.go", "", "", LANG_GO, OWNER_RUNTIME},
        {"compress/flate.NewWriter", "compress/flate/deflate.go", "", "", LANG_GO, OWNER_LIBRARY},
        {"testing.(*B).runN", "", "", "", LANG_GO, OWNER_LIBRARY},
        {"golang.org/x/net/trace.init", "golang.org/x/net@v0.56.0/trace/events.go", "", "", LANG_GO, OWNER_LIBRARY},
        {"github.com/acme/lib.F", "/go/pkg/mod/github.com/acme/lib/f.go", "", "", LANG_GO, OWNER_LIBRARY},
        {"github.com/grafana/pyroscope-go.TagWrapper", "github.com/grafana/pyroscope-go@v1.5.0/api.go", "", "gospy",
         LANG_GO, OWNER_LIBRARY},
        {"timer.Tick", "timer/timer.go", "", "", LANG_GO, OWNER_OWN}, /* not package time */
        {"slow_function", "/srv/app/shop.py", "", "pyspy", LANG_PYTHON, OWNER_OWN},
        {"<module>", "/srv/app/shop.py", "", "pyspy", LANG_PYTHON, OWNER_OWN},
        {"Thread.run", "/usr/lib/python3.11/threading.py", "", "", LANG_PYTHON, OWNER_RUNTIME},
        {"get", "/usr/lib/python3/dist-packages/requests/api.py", "", "", LANG_PYTHON, OWNER_LIBRARY},
        {"get", "/venv/lib/python3.11/site-packages/requests/api.py", "", "", LANG_PYTHON, OWNER_LIBRARY},
        {"exec_module", "<frozen importlib._bootstrap>", "", "pyspy", LANG_PYTHON, OWNER_RUNTIME},
        {"tag_wrapper", "/srv/app/lib/pyroscope/__init__.py", "", "pyspy", LANG_PYTHON, OWNER_LIBRARY},
        {"fast_function (busy.py:7)", "", "", "", LANG_PYTHON, OWNER_OWN},
        {"_find_and_load (<frozen importlib._bootstrap>:1176)", "", "", "", LANG_PYTHON, OWNER_RUNTIME},
        {"loads (/usr/lib/python3.11/json/__init__.py:346)", "", "", "", LANG_PYTHON, OWNER_RUNTIME},
        {"./shop.js:slowFunction:7", "/srv/app/shop.js", "", "nodespy", LANG_NODE, OWNER_OWN},
        {"./shop.js:(anonymous:L#28:C#73):28", "/srv/app/shop.js", "", "", LANG_NODE, OWNER_OWN},
        {"(anonymous)", "/srv/app/shop.js", "", "", LANG_NODE, OWNER_OWN},
        {"node:internal/timers:listOnTimeout:581", "node:internal/timers", "", "", LANG_NODE, OWNER_RUNTIME},
        {"./node_modules/pprof/out/src/time-profiler.js:start", "/srv/app/node_modules/pprof/out/src/time-profiler.js",
         "", "", LANG_NODE, OWNER_LIBRARY},
        {":(garbage collector):0", "", "", "nodespy", LANG_NODE, OWNER_RUNTIME},
        {"(garbage collector)", "", "", "", LANG_NODE, OWNER_RUNTIME},
        {":repeat:0", "", "", "nodespy", LANG_NODE, OWNER_RUNTIME},
        {"JSON.parse", "node:internal", "", "", LANG_NODE, OWNER_RUNTIME},
        {"Shop.slowFunction", "", "", "javaspy", LANG_JAVA, OWNER_OWN},
        {"Shop$$Lambda$77.0x00007f05dc0c7978.run", "", "", "alloy.java", LANG_JAVA, OWNER_OWN},
        {"java/lang/Thread.run", "", "", "", LANG_JAVA, OWNER_RUNTIME},
        {"java.lang.Thread.run", "Thread.java", "", "", LANG_JAVA, OWNER_RUNTIME},
        {"org.springframework.web.Servlet.doGet", "", "", "javaspy", LANG_JAVA, OWNER_LIBRARY},
        {"io/pyroscope/labels/Pyroscope$LabelsWrapper.run", "", "", "javaspy", LANG_JAVA, OWNER_LIBRARY},
        {"libjvm.so.JvmtiExport::post_monitor_contended_entered", "", "", "alloy.java", LANG_JAVA, OWNER_RUNTIME},
        {"G1CollectedHeap::free_region", "", "", "javaspy", LANG_JAVA, OWNER_RUNTIME},
        {"._new_array_Java", "", "", "alloy.java", LANG_JAVA, OWNER_RUNTIME},
        {"thread_native_entry", "", "", "javaspy", LANG_JAVA, OWNER_RUNTIME},
        {"[no_Java_frame]", "", "", "javaspy", LANG_JAVA, OWNER_RUNTIME},
        {"wasm-to-js:iii:i", "wasm://wasm/0002f80e", "", "nodespy", LANG_NODE, OWNER_LIBRARY},
        {"__memcmp_avx2_movbe", "memcmp-avx2-movbe.S", "", "pyroscope-rs", LANG_NATIVE, OWNER_RUNTIME},
        {"_int_free", "malloc.c", "", "pyroscope-rs", LANG_NATIVE, OWNER_RUNTIME},
        {"I2C/C2I adapters", "", "", "javaspy", LANG_JAVA, OWNER_RUNTIME},
        {"com.sunrise.Shop.open", "", "", "javaspy", LANG_JAVA, OWNER_OWN}, /* not com.sun */
        {"work", "/srv/app/shop.rb", "", "rbspy", LANG_RUBY, OWNER_OWN},
        {"call", "/usr/lib/ruby/gems/3.1.0/gems/rack-3.0/lib/rack.rb", "", "", LANG_RUBY, OWNER_LIBRARY},
        {"each", "<internal:kernel>", "", "", LANG_RUBY, OWNER_RUNTIME},
        {"sleep [c function]", "(unknown)", "", "rbspy", LANG_RUBY, OWNER_RUNTIME},
        {"Shop.Program.Main", "", "", "dotnetspy", LANG_DOTNET, OWNER_OWN},
        {"System.Threading.Thread.StartCallback", "", "", "dotnetspy", LANG_DOTNET, OWNER_RUNTIME},
        {"Microsoft.AspNetCore.Server.Kestrel.Run", "", "", "", LANG_DOTNET, OWNER_LIBRARY},
        {"shop::slow_function", "main.rs", "", "pyroscope-rs", LANG_RUST, OWNER_OWN},
        {"<shop::Cart as core::fmt::Display>::fmt", "cart.rs", "", "", LANG_RUST, OWNER_OWN},
        {"std::rt::lang_start::{{closure}}", "rt.rs", "", "pyroscope-rs", LANG_RUST, OWNER_RUNTIME},
        {"<&dyn core::ops::function::Fn<(), Output = i32> as X>::call", "function.rs", "", "", LANG_RUST,
         OWNER_RUNTIME},
        {"<u64>::wrapping_mul", "mod.rs", "", "", LANG_RUST, OWNER_RUNTIME},
        {"tokio::runtime::park", "/root/.cargo/registry/src/x/tokio-1.0/src/park.rs", "", "", LANG_RUST, OWNER_LIBRARY},
        {"pyroscope::backend::run", "backend.rs", "", "", LANG_RUST, OWNER_LIBRARY},
        {"malloc", "", "/usr/lib/x86_64-linux-gnu/libc.so.6", "", LANG_ANY, OWNER_LIBRARY},
        {"__libc_start_call_main", "libc_start_call_main.h", "", "pyroscope-rs", LANG_NATIVE, OWNER_RUNTIME},
        {"do_syscall_64", "", "[kernel.kallsyms]", "", LANG_ANY, OWNER_KERNEL},
        {"finish_task_switch_[k]", "", "", "", LANG_ANY, OWNER_KERNEL},
        {"compute", "src/compute.c", "/srv/app/calc", "", LANG_NATIVE, OWNER_OWN},
        {"foo", "", "", "", LANG_ANY, OWNER_OWN},
        {"[unknown]", "", "", "", LANG_ANY, OWNER_RUNTIME},
    };
    (void)state;
    for (size_t i = 0; i < COUNTOF(list); i++) {
        struct place p = {str_of(list[i].function), str_of(list[i].file), str_of(list[i].mapping)};
        enum language l = rules_language(&p, rules_agent_language(str_of(list[i].spy)));
        if (l != list[i].language || rules_owner(&p, l) != list[i].owner)
            fail_msg("%s in %s: %s, %s", list[i].function, list[i].file, language_name(l),
                     owner_name(rules_owner(&p, l)));
    }
}

/* A rule behind another that already takes everything it could take would be dead. */
static void test_no_rule_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_rules; i++)
        for (size_t k = 0; k < i; k++)
            if (rules[i].language == rules[k].language && rules[i].field == rules[k].field &&
                rules[i].how == rules[k].how && str_eq(rules[i].pattern, rules[k].pattern))
                fail_msg("%s %s stands twice", language_name(rules[i].language), rules[i].pattern.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_frames), cmocka_unit_test(test_no_rule_twice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

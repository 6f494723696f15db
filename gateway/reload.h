/* What may change under a running process: configuration, keys and certificates, on SIGHUP and when their files change.
 */
#ifndef GATEWAY_RELOAD_H
#define GATEWAY_RELOAD_H

#include "gateway/listen.h"
#include "gateway/watch.h"

struct reload {
    struct app *app;
    struct listeners *listeners;
    const char *conf_path; /* NULL: as conf_load takes it */
    struct watch watch;
};
/* Reads the keys for the first time. */
void reload_init(struct reload *r, struct app *app, struct listeners *listeners, const char *conf_path);
void reload_all(struct reload *r);  /* SIGHUP: all of it, each part whole or as it was before */
void reload_tick(struct reload *r); /* looks at the files; call it every WATCH_LOOK_MS */

#endif

/* What may change under a running process: the configuration on SIGHUP, the keys when their file changes. */
#ifndef GATEWAY_RELOAD_H
#define GATEWAY_RELOAD_H

#include <sys/stat.h>

#include "gateway/app.h"

struct reload {
    struct app *app;
    const char *conf_path; /* NULL: as conf_load takes it */
    struct stat keys_seen; /* of the keys file, zeroed: there was none */
};
void reload_init(struct reload *r, struct app *app, const char *conf_path); /* reads the keys for the first time */
void reload_all(struct reload *r);                                          /* SIGHUP: all of it, or what was before */
void reload_tick(struct reload *r); /* looks at the keys file; call it every second */

#endif

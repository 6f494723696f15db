/* `flamegate serve`: builds the process up, runs it, drains it, takes it down. */
#ifndef GATEWAY_SERVE_H
#define GATEWAY_SERVE_H

#include "conf/conf.h"

/* Takes conf over. port_file NULL: none is written. Returns the exit code. */
int serve(struct conf *conf, const char *conf_path, const char *port_file);

#endif

/* `flamegate spool ls|verify [--dir DIR]`. */
#ifndef GATEWAY_SPOOL_COMMAND_H
#define GATEWAY_SPOOL_COMMAND_H

/* argv behind "spool". data_dir: of the configuration. The process's exit code: 0 good, 1 something is damaged or
 * cannot be read, 2 usage. */
int spool_command(int argc, char **argv, const char *data_dir);

#endif

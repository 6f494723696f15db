/* `flamegate key …`: the command line of auth/. The only part of it that prints and that asks what time it is. */
#ifndef AUTH_KEY_COMMAND_H
#define AUTH_KEY_COMMAND_H

/*
 * argv[0] is the word "key", argv[1] one of create, list, revoke, hash. A secret, a list or a hash goes to standard
 * output alone, everything else to standard error. Returns the exit code: 0 good, 2 wrong use, 1 anything else.
 */
int key_command(int argc, char **argv, const char *keys_file);

#endif

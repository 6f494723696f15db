/* Runs a fuzz target over the files of a corpus, without a fuzzer: what `make test` links each test/fuzz/fuzz_X.c with.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t n = 0, got;

    if (!f) {
        perror(path);
        exit(1);
    }
    do {
        data = realloc(data, n + 65536);
        if (!data)
            exit(1);
        got = fread(data + n, 1, 65536, f);
        n += got;
    } while (got);
    fclose(f);
    printf("%s\n", path); /* the last one printed is the one that crashed */
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, n);
    free(data);
}

int main(int argc, char **argv)
{
    int n = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    DIR *d = opendir(argv[1]);
    if (!d) {
        perror(argv[1]);
        return 1;
    }
    for (struct dirent *e; (e = readdir(d));) {
        char path[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        replay(path);
        n++;
    }
    closedir(d);
    printf("%d inputs\n", n);
    return n ? 0 : 1; /* an empty corpus tests nothing */
}

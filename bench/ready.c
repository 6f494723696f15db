/*
 * ready: how long from exec until GET /readyz is answered with 200.
 *
 *   ready PORT PROGRAM ARGUMENT...      prints milliseconds
 *
 * Starts the program, asks 127.0.0.1:PORT every half millisecond for at most ten seconds, then ends the program it
 * started.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int ask(uint16_t port)
{
    static const char request[] = "GET /readyz HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n";
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 1};
    char answer[16] = "";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int good = connect(fd, (struct sockaddr *)&to, sizeof to) == 0 && write(fd, request, sizeof request - 1) > 0 &&
               recv(fd, answer, sizeof answer - 1, MSG_WAITALL) > 12 && strncmp(answer, "HTTP/1.1 200", 12) == 0;
    close(fd);
    return good;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: ready PORT PROGRAM ARGUMENT...\n");
        return 2;
    }
    uint16_t port = (uint16_t)strtoul(argv[1], NULL, 10);
    double start = now();
    pid_t child = fork();
    if (child == 0) {
        execv(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int good = 0;
    while (child > 0 && !(good = ask(port)) && now() - start < 1e4 && waitpid(child, NULL, WNOHANG) == 0)
        usleep(500);
    double took = now() - start;
    if (child > 0 && kill(child, SIGKILL) == 0)
        waitpid(child, NULL, 0);
    if (!good) {
        fprintf(stderr, "ready: never was\n");
        return 1;
    }
    printf("%.2f\n", took);
    return 0;
}

/* The floor: the least that a load generator can do. One thread, epoll, N connections in a closed loop, one
 * write and as many reads as it takes; it knows the length of an answer and looks at no byte of it.
 *
 *   floor PORT PATH LENGTH CONNECTIONS SECONDS     LENGTH: head and body, as counted by one first request
 *
 * Prints: answers, seconds of CPU. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void die(const char *what) { perror(what); exit(1); }

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    long length = atol(argv[3]), n = atol(argv[4]), answers = 0;
    double seconds = atof(argv[5]);
    char request[1024];
    int size = snprintf(request, sizeof request,
        "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: floor\r\nAccept: */*\r\n\r\n", argv[2]);
    static char buffer[1 << 17];
    int epoll = epoll_create1(0);
    long *left = malloc(n * sizeof *left);
    int *fds = malloc(n * sizeof *fds);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    for (long i = 0; i < n; i++) {
        int one = 1;
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fds[i], (void *)&to, sizeof to)) die("connect");
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = i};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event);
        left[i] = length;
        if (write(fds[i], request, size) != size) die("write");
    }
    double end = now(CLOCK_MONOTONIC) + seconds;
    struct epoll_event events[256];
    while (now(CLOCK_MONOTONIC) < end) {
        int got = epoll_wait(epoll, events, 256, 100);
        for (int e = 0; e < got; e++) {
            long i = events[e].data.u64;
            for (;;) {
                ssize_t came = recv(fds[i], buffer, sizeof buffer, MSG_DONTWAIT);
                if (came < 0 && errno == EAGAIN) break;
                if (came <= 0) die("read");
                left[i] -= came;
                if (left[i] == 0) {
                    answers++;
                    left[i] = length;
                    if (write(fds[i], request, size) != size) die("write");
                    break;
                }
                if (came < (ssize_t)sizeof buffer) break;
            }
        }
    }
    printf("%ld %.6f\n", answers, now(CLOCK_PROCESS_CPUTIME_ID));
}

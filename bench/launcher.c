/* Runs one command and reports what it took: launcher REPORT_FD COMMAND [ARGUMENT...]
 *
 * One line of JSON goes to the descriptor REPORT_FD: times, peak memory, blocks read and written, how it ended.
 * Why not from Python: on Linux the peak memory of a child counts from the fork (with vfork: from its parent), so a big
 * Python process would show up in the figures of a small command. This parent has about one megabyte.
 * It does not time out and does not forward signals; Python ends the whole process group.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    if (count < 3) {
        fputs("usage: launcher REPORT_FD COMMAND [ARGUMENT...]\n", stderr);
        return 2;
    }
    int report = atoi(arguments[1]);
    fcntl(report, F_SETFD, FD_CLOEXEC);
    double started = now();
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return 1;
    }
    if (child == 0) {
        execvp(arguments[2], arguments + 2);
        perror(arguments[2]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) != child) {
        perror("wait4");
        return 1;
    }
    double wall = now() - started;
    dprintf(report,
            "{\"wall_s\": %.6f, \"user_s\": %.6f, \"sys_s\": %.6f, \"max_rss_bytes\": %lld, \"blocks_in\": %ld, "
            "\"blocks_out\": %ld, \"major_faults\": %ld, \"exit_code\": %d}\n",
            wall, seconds(usage.ru_utime), seconds(usage.ru_stime), (long long)usage.ru_maxrss * 1024,
            usage.ru_inblock, usage.ru_oublock, usage.ru_majflt,
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}

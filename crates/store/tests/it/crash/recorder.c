/* Preloaded into a child process (LD_PRELOAD): logs the calls that change files below RECORDER_FOLDER, in the
   order in which they happen, to RECORDER_LOG. The call with the number RECORDER_FAIL_AT fails with
   RECORDER_ERRNO; a write that fails for lack of space is cut in half first, as by a full disk. Each entry is
   a header of four integers (kind, offset, bytes of the path, bytes of the data), the path and the data. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CREATE = 1, WRITE = 2, TRUNCATE = 3, SYNC = 4, UNLINK = 5, RENAME = 6 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *folder;
static int log_fd = -1;
static long fail_at, count;
static int fail_errno, is_full_next;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("RECORDER_LOG"), *at = getenv("RECORDER_FAIL_AT"), *number = getenv("RECORDER_ERRNO");
    const char *below = getenv("RECORDER_FOLDER");
    if (!path || !below) return;
    log_fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    fail_at = at ? atol(at) : 0;
    fail_errno = number ? atoi(number) : EIO;
    folder = below;
}

static int is_recorded(const char *path) {
    size_t length = folder ? strlen(folder) : 0;
    if (log_fd < 0 || strncmp(path, folder, length) != 0 || (path[length] != '/' && path[length] != 0)) return 0;
    /* The shared memory of SQLite is rebuilt after a crash, and the lock of a server is empty. */
    const char *end = strrchr(path, '-');
    return !end || (strcmp(end, "-shm") != 0 && strcmp(end, "-server") != 0);
}

static int fd_path(int fd, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, size - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return is_recorded(path);
}

static void put(const void *data, size_t bytes) {
    const char *from = data;
    while (bytes > 0) {
        long written = syscall(SYS_write, log_fd, from, bytes);
        if (written <= 0) abort();
        from += written;
        bytes -= (size_t)written;
    }
}

static void record(uint64_t kind, uint64_t offset, const char *path, const void *data, size_t bytes) {
    uint64_t header[4] = {kind, offset, strlen(path), bytes};
    put(header, sizeof header);
    put(path, strlen(path));
    put(data, bytes);
}

/* What the test itself writes does not fail. */
static int is_failing(const char *path) {
    const char *name = strrchr(path, '/');
    if (!fail_at || (name && strcmp(name, "/acknowledged") == 0)) return 0;
    if (++count != fail_at) return 0;
    return 1;
}

static ssize_t write_at(int fd, const void *data, size_t bytes, off_t at, int is_positioned) {
    char path[4096];
    int saved;
    if (!fd_path(fd, path, sizeof path))
        return is_positioned ? syscall(SYS_pwrite64, fd, data, bytes, at) : syscall(SYS_write, fd, data, bytes);
    pthread_mutex_lock(&lock);
    int fails = is_failing(path);
    ssize_t written = -1;
    if (is_full_next || (fails && (fail_errno != ENOSPC || bytes < 2))) {
        is_full_next = 0;
        saved = fail_errno;
    } else {
        if (fails) {
            is_full_next = 1;
            bytes /= 2;
        }
        struct stat facts;
        if (!is_positioned) {
            int is_append = (int)syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND;
            at = is_append && fstat(fd, &facts) == 0 ? facts.st_size : (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
        }
        written = is_positioned ? syscall(SYS_pwrite64, fd, data, bytes, at) : syscall(SYS_write, fd, data, bytes);
        saved = errno;
        if (written > 0) record(WRITE, (uint64_t)at, path, data, (size_t)written);
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
    return written;
}

ssize_t write(int fd, const void *data, size_t bytes) { return write_at(fd, data, bytes, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) { return write_at(fd, data, bytes, at, 1); }
ssize_t pwrite64(int fd, const void *data, size_t bytes, off_t at) { return write_at(fd, data, bytes, at, 1); }

/* A call with one result code: fails, or is made and recorded. */
static int finish(const char *path, int fails, long result, uint64_t kind, uint64_t value, const char *data) {
    int saved = fails ? fail_errno : errno;
    if (result == 0) record(kind, value, path, data, data ? strlen(data) : 0);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return (int)result;
}

static int sync_fd(int fd, long number) {
    char path[4096];
    if (!fd_path(fd, path, sizeof path)) return (int)syscall(number, fd);
    pthread_mutex_lock(&lock);
    int fails = is_failing(path);
    return finish(path, fails, fails ? -1 : syscall(number, fd), SYNC, 0, NULL);
}

int fsync(int fd) { return sync_fd(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_fd(fd, SYS_fdatasync); }

int ftruncate(int fd, off_t bytes) {
    char path[4096];
    if (!fd_path(fd, path, sizeof path)) return (int)syscall(SYS_ftruncate, fd, bytes);
    pthread_mutex_lock(&lock);
    int fails = is_failing(path);
    return finish(path, fails, fails ? -1 : syscall(SYS_ftruncate, fd, bytes), TRUNCATE, (uint64_t)bytes, NULL);
}
int ftruncate64(int fd, off_t bytes) { return ftruncate(fd, bytes); }

int unlink(const char *path) {
    if (!is_recorded(path)) return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    pthread_mutex_lock(&lock);
    int fails = is_failing(path);
    return finish(path, fails, fails ? -1 : syscall(SYS_unlinkat, AT_FDCWD, path, 0), UNLINK, 0, NULL);
}

int rename(const char *from, const char *to) {
    long number = SYS_renameat2;
    if (!is_recorded(from)) return (int)syscall(number, AT_FDCWD, from, AT_FDCWD, to, 0);
    pthread_mutex_lock(&lock);
    int fails = is_failing(from);
    return finish(from, fails, fails ? -1 : syscall(number, AT_FDCWD, from, AT_FDCWD, to, 0), RENAME, 0, to);
}

static int open_file(const char *path, int flags, mode_t mode) {
    if (!(flags & O_CREAT) || !is_recorded(path)) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    pthread_mutex_lock(&lock);
    int is_new = syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0;
    int fails = is_new && is_failing(path);
    int fd = fails ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    int saved = fails ? fail_errno : errno;
    if (fd >= 0 && is_new) record(CREATE, 0, path, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return fd;
}

#define OPEN(name)                                          \
    int name(const char *path, int flags, ...) {            \
        va_list more;                                       \
        va_start(more, flags);                              \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; \
        va_end(more);                                       \
        return open_file(path, flags, mode);                \
    }
OPEN(open)
OPEN(open64)

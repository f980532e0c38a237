// Takes kernel memory by the route that its argument names until it is refused, or for a while; then holds it, and
// prints how its processes ended that. The second argument is for how many seconds each of them takes memory; with it,
// the program holds the memory for a second after the last of them has ended, or after twice that time and some seconds.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static char block[1 << 20];
static int number, seconds = 3;
// Shared by all processes.
static struct { int refused, out_of_time, error; } *ended;

static int is_time(void) {
    static time_t end;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (end == 0)
        end = now.tv_sec + seconds;
    return now.tv_sec < end;
}

static const char *name(void) {
    static char text[256];
    static long count;
    snprintf(text, sizeof text, "/tmp/%d.%0180ld", number, count++);
    return text;
}

static void nothing(void) {}

static void record_locks(void) {
    int files[200];
    for (int file = 0; file < 200; file++)
        files[file] = open(name(), O_RDWR | O_CREAT, 0600);
    for (long range = 1 << 20; range > 0 && is_time(); range--)
        for (int file = 0; file < 200; file++) {
            struct flock lock = {.l_type = F_WRLCK, .l_start = 2 * range, .l_len = 1};
            fcntl(files[file], F_SETLK, &lock);
        }
}

static void file_locks(void) {
    int file;
    while (is_time() && (file = open(name(), O_RDWR | O_CREAT, 0600)) >= 0)
        fcntl(file, F_SETLEASE, F_WRLCK);
}

static void lists(const char *attribute) {
    struct entry { unsigned short tag, permissions; unsigned id; };
    static struct { unsigned version; struct entry entries[8000]; } list = {.version = 2};
    for (int place = 0; place < 8000; place++)
        list.entries[place] = (struct entry){2, 7, 1000};
    list.entries[0] = (struct entry){1, 7, -1};
    list.entries[7997] = (struct entry){4, 5, -1};
    list.entries[7998] = (struct entry){16, 7, -1};
    list.entries[7999] = (struct entry){32, 5, -1};
    const char *path = name();
    while (is_time() && mkdir(path, 0700) == 0 && setxattr(path, attribute, &list, sizeof list, 0) == 0)
        path = name();
}
static void access_lists(void) { lists("system.posix_acl_access"); }
static void default_lists(void) { lists("system.posix_acl_default"); }

static void attributes(void) {
    for (const char *path = name(); is_time() && mkdir(path, 0700) == 0; path = name())
        if (setxattr(path, "user.x", block, 60000, 0) != 0)
            break;
}

static void filters(void) {
    static struct sock_filter text[4096];
    for (int place = 1; place < 4095; place++)
        text[place] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0);
    text[0] = (struct sock_filter)BPF_STMT(BPF_LDX | BPF_IMM, 1);
    text[4095] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {4096, text};
    while (is_time() && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0) {}
}

static void pipes(void) {
    int ends[2];
    while (is_time() && pipe2(ends, O_NONBLOCK) == 0) {
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        while (write(ends[1], block, sizeof block) > 0) {}
    }
}

static void lent_pages(void) {
    int ends[2];
    while (is_time() && pipe2(ends, O_NONBLOCK) == 0)
        for (int count = 0; count < 16; count++) {
            char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            struct iovec lent = {page, 4096};
            vmsplice(ends[1], &lent, 1, SPLICE_F_NONBLOCK);
            munmap(page, 4096);
        }
}

static void huge_pages(void) {
    for (int count = 0; count < 1000 && is_time(); count++) {
        char *pages = mmap(NULL, 2 << 20, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
        if (pages == MAP_FAILED)
            break;
        *pages = 1;
    }
}

static void event_polls(void) {
    int events[100], poll;
    for (int place = 0; place < 100; place++)
        events[place] = eventfd(0, 0);
    while (is_time() && (poll = epoll_create1(0)) >= 0)
        for (int place = 0; place < 100; place++) {
            struct epoll_event event = {.events = EPOLLIN};
            epoll_ctl(poll, EPOLL_CTL_ADD, events[place], &event);
        }
}

static void timer_files(void) {
    while (is_time() && timerfd_create(CLOCK_MONOTONIC, 0) >= 0) {}
}

static void timers(void) {
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    timer_t timer;
    while (is_time() && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {}
}

static void signals(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    while (is_time() && sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0) {}
}

static void messages(void) {
    struct { long kind; char text[8192]; } message = {.kind = 1};
    for (int queue = 0; is_time() && queue >= 0;) {
        queue = msgget(IPC_PRIVATE, 0600);
        while (msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) == 0) {}
    }
}

static void semaphores(void) {
    while (is_time() && semget(IPC_PRIVATE, 32000, 0600) >= 0) {}
}

static void local_sockets(void) {
    int ends[2], size = 1 << 30;
    while (is_time() && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends) == 0) {
        setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        while (send(ends[0], block, 1, 0) > 0) {}
    }
}

static void file_events(void) {
    while (is_time() && inotify_add_watch(inotify_init1(IN_NONBLOCK), "/tmp", IN_ALL_EVENTS) >= 0) {}
    for (const char *path = name(); is_time(); path = name()) {
        close(open(path, O_RDWR | O_CREAT, 0600));
        unlink(path);
    }
}

static void links(void) {
    static char target[128];
    memset(target, 'a', 127);
    while (is_time() && symlink(target, name()) == 0) {}
}

static void missing_names(void) {
    struct stat status;
    while (is_time())
        stat(name(), &status);
}

static void page_tables(void) {
    char *range = mmap(NULL, 1L << 44, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (long place = 0; range != MAP_FAILED && place < 1L << 44 && is_time(); place += 1L << 21)
        *(volatile char *)(range + place);
}

// The rest is kept one in each page: what was charged for the others can be taken again, in objects of another kind.
#define BUDGET (900 << 10)

static void message_pages(void) {
    static const struct { int text, in_page; } KINDS[] = {{0, 64}, {140, 21}, {200, 16}, {460, 16}, {970, 16}, {2000, 16}};
    struct { long kind; char text[2000]; } message;
    for (int kind = 0; kind < 6; kind++) {
        int queues[100], used = 0, failures = 0;
        for (int count = 0; count * (KINDS[kind].text + 48) < BUDGET && used < 100 && failures < 2;) {
            message.kind = count % KINDS[kind].in_page ? 2 : 1;
            if (used > 0 && msgsnd(queues[used - 1], &message, KINDS[kind].text, IPC_NOWAIT) == 0) {
                count++;
                failures = 0;
            } else if (failures++ == 0 && (queues[used] = msgget(IPC_PRIVATE, 0600)) >= 0) {
                used++;
            }
        }
        while (used-- > 0)
            while (msgrcv(queues[used], &message, sizeof message.text, 2, IPC_NOWAIT) >= 0) {}
    }
}

static void local_message_pages(void) {
    static const struct { int text, in_page; } KINDS[] = {{1, 14}, {600, 16}, {1500, 16}, {3700, 8}, {7000, 4}};
    for (int kind = 0; kind < 5; kind++) {
        // One pair for those that stay, the others for the rest.
        int pairs[40][2], used = 1;
        socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pairs[0]);
        for (int count = 0; count * (KINDS[kind].text + 900) < BUDGET && used < 40; count++) {
            int to = count % KINDS[kind].in_page ? used - 1 : 0;
            if (to == 0 && used > 1) {
                send(pairs[0][0], block, KINDS[kind].text, 0);
            } else if (used == 1 || send(pairs[to][0], block, KINDS[kind].text, 0) < 0) {
                if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pairs[used]) != 0)
                    break;
                used++;
            }
        }
        while (--used > 0) {
            close(pairs[used][0]);
            close(pairs[used][1]);
        }
    }
}

static void mapping_pages(void) {
    enum { COUNT = 3000 };
    char *range = mmap(NULL, COUNT * 8192L, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (long place = 0; place < COUNT; place++)
        mprotect(range + place * 8192, 4096, PROT_READ);
    for (long place = 0; place < 2 * COUNT; place++)
        if (place % 21 != 0)
            munmap(range + place * 4096, 4096);
}

static void pages_of_many_kinds(void) {
    mapping_pages();
    local_message_pages();
    message_pages();
}

static void directories(void) {
    int directory;
    while (is_time() && (directory = open("/usr/bin", O_RDONLY | O_DIRECTORY)) >= 0)
        if (syscall(SYS_getdents64, directory, block, 400) <= 0)
            break;
}

static void local_connections(void) {
    for (int listener; is_time() && (listener = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0;) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        socklen_t length = sizeof address;
        bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t));
        listen(listener, 4096);
        getsockname(listener, (struct sockaddr *)&address, &length);
        for (int refused = 0; !refused && is_time();) {
            int end = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
            refused = connect(end, (struct sockaddr *)&address, length) != 0;
            close(end);
        }
    }
}

// A mapping keeps a file open, and with it the lock of a process that has ended.
static void orphaned_locks(void) {
    for (int batch = 0; batch < 22 && is_time(); batch++) {
        const char *path = name();
        int files[100];
        close(open(path, O_RDWR | O_CREAT, 0600));
        truncate(path, 4096);
        for (int file = 0; file < 100; file++) {
            files[file] = open(path, O_RDWR);
            mmap(NULL, 4096, PROT_READ, MAP_SHARED, files[file], 0);
        }
        pid_t taker = fork();
        if (taker == 0) {
            for (int file = 0; file < 100; file++)
                flock(files[file], LOCK_SH);
            _exit(0);
        }
        if (taker > 0)
            waitpid(taker, NULL, 0);
        for (int file = 0; file < 100; file++)
            close(files[file]);
    }
}

#define ROUTE(name) {#name, name}
static const struct { const char *name; void (*take)(void); } ROUTES[] = {
    ROUTE(nothing), ROUTE(record_locks), ROUTE(file_locks), ROUTE(access_lists), ROUTE(default_lists),
    ROUTE(attributes), ROUTE(filters), ROUTE(pipes), ROUTE(lent_pages), ROUTE(huge_pages), ROUTE(event_polls),
    ROUTE(timer_files), ROUTE(timers), ROUTE(signals), ROUTE(messages), ROUTE(semaphores), ROUTE(local_sockets),
    ROUTE(file_events), ROUTE(links), ROUTE(missing_names), ROUTE(page_tables), ROUTE(message_pages),
    ROUTE(local_message_pages), ROUTE(mapping_pages), ROUTE(pages_of_many_kinds), ROUTE(directories),
    ROUTE(local_connections), ROUTE(orphaned_locks),
};

static void take(void (*route)(void)) {
    is_time();
    errno = 0;
    route();
    int error = errno;
    if (is_time()) {
        ended->error = error;
        __atomic_add_fetch(&ended->refused, 1, __ATOMIC_SEQ_CST);
    } else {
        __atomic_add_fetch(&ended->out_of_time, 1, __ATOMIC_SEQ_CST);
    }
    for (;;)
        pause();
}

static int count_ended(void) {
    return __atomic_load_n(&ended->refused, __ATOMIC_SEQ_CST) + __atomic_load_n(&ended->out_of_time, __ATOMIC_SEQ_CST);
}

int main(int count, char **arguments) {
    if (count < 2 || count > 3)
        return 2;
    if (count == 3)
        seconds = atoi(arguments[2]);
    ended = mmap(NULL, sizeof *ended, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ended == MAP_FAILED)
        return 2;
    memset(block, 1, sizeof block);
    for (size_t route = 0; route < sizeof ROUTES / sizeof *ROUTES; route++) {
        if (strcmp(ROUTES[route].name, arguments[1]) != 0)
            continue;
        // What is bounded for each process is bounded for all of them by their number.
        while (number < 50) {
            pid_t child = fork();
            if (child == 0)
                take(ROUTES[route].take);
            if (child < 0)
                break;
            number++;
        }
        for (int waits = 200 * (seconds + 2); count == 3 && count_ended() < number && waits > 0; waits--)
            usleep(10000);
        sleep(count == 3 ? 1 : seconds + 1);
        printf("%d processes: %d refused", number, ended->refused);
        if (ended->refused > 0)
            printf(" (%s)", ended->error == 0 ? "no error" : strerror(ended->error));
        printf(", %d out of time, %d not ended\n", ended->out_of_time, number - count_ended());
        return 0;
    }
    return 2;
}

/* Handlers, a blocked signal, a jump out of a fault, a timer, and a signal that carries a value. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t seen;
static sigjmp_buf before_fault;

static void count(int number) { seen += number; }

static void jump(int number, siginfo_t *information, void *context) {
    (void)context;
    siglongjmp(before_fault, information->si_addr == NULL ? number : -1);
}

static void take(int number, siginfo_t *information, void *context) {
    (void)context;
    seen = number == SIGRTMIN ? information->si_value.sival_int : -1;
}

int main(void) {
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = count}, NULL);
    raise(SIGUSR1);
    printf("%d\n", seen);

    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    raise(SIGUSR1);
    sigpending(&pending);
    printf("%d %d\n", seen, sigismember(&pending, SIGUSR1));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    printf("%d\n", seen);

    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = jump, .sa_flags = SA_SIGINFO}, NULL);
    int fault = sigsetjmp(before_fault, 1);
    if (fault == 0)
        *(volatile int *)NULL = 1;
    printf("%s\n", strsignal(fault));

    sigaction(SIGALRM, &(struct sigaction){.sa_handler = count}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 20000}}, NULL);
    while (seen == 20)
        pause();
    printf("%d\n", seen);

    sigaction(SIGRTMIN, &(struct sigaction){.sa_sigaction = take, .sa_flags = SA_SIGINFO}, NULL);
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 4711});
    printf("%d\n", seen);
    signal(SIGTERM, SIG_IGN);
    printf("%d\n", raise(SIGTERM));
    return 0;
}

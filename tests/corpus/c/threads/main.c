/* Threads that share by mutex, by atomic, by condition, by barrier, and values that they do not share. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdint.h>

enum { WORKERS = 6, TURNS = 5000, ROOM = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t start;
static long counted;
static atomic_long calls;
static _Thread_local int mine;
static int ring[ROOM], used, first;

static void *count(void *argument) {
    pthread_barrier_wait(&start);
    for (int turn = 0; turn < TURNS; turn++) {
        mine++;
        atomic_fetch_add(&calls, 1);
        pthread_mutex_lock(&lock);
        counted += (intptr_t)argument;
        pthread_mutex_unlock(&lock);
    }
    return (void *)(intptr_t)mine;
}

static void *produce(void *argument) {
    for (int number = 1; number <= *(int *)argument + 1; number++) {
        pthread_mutex_lock(&lock);
        while (used == ROOM)
            pthread_cond_wait(&changed, &lock);
        ring[(first + used++) % ROOM] = number <= *(int *)argument ? number : 0;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static int take(void) {
    pthread_mutex_lock(&lock);
    while (used == 0)
        pthread_cond_wait(&changed, &lock);
    int number = ring[first];
    first = (first + 1) % ROOM;
    used--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return number;
}

int main(void) {
    pthread_t threads[WORKERS];
    pthread_barrier_init(&start, NULL, WORKERS);
    for (intptr_t worker = 0; worker < WORKERS; worker++)
        if (pthread_create(&threads[worker], NULL, count, (void *)(worker + 1)) != 0)
            return 1;
    long turns = 0;
    for (int worker = 0; worker < WORKERS; worker++) {
        void *result;
        pthread_join(threads[worker], &result);
        turns += (intptr_t)result;
    }
    printf("%ld %ld %ld, mine %d\n", counted, atomic_load(&calls), turns, mine);

    int most = 1000;
    long sum = 0;
    pthread_create(&threads[0], NULL, produce, &most);
    for (int number; (number = take()) != 0;)
        sum += number;
    pthread_join(threads[0], NULL);
    printf("%ld\n", sum);
    return 0;
}

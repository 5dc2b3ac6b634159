/* Preloaded into a process of librdkafka: its broker threads pause while they hold the handle's lock for reading.
 *
 * What may happen in that time is what may happen on a busy machine, where the thread waits for a processor. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_MICROSECONDS 200

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
        int (*next)(pthread_rwlock_t *) = dlsym(RTLD_NEXT, "pthread_rwlock_rdlock");
        int result                      = next(lock);
        char name[16];

        if (!pthread_getname_np(pthread_self(), name, sizeof(name)) && !strncmp(name, "rdk:broker", 10))
                usleep(PAUSE_MICROSECONDS);
        return result;
}

#include "rack/server_cores.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_ring.h>

#include "core/memory.h"

#define SLEEP_NS 50000

struct player {
	struct server_cores *cores;
	unsigned int core;
	bool started;
	pthread_t thread;
	struct rte_ring *left[2]; /* packets that leave here, by enum chain_end */
};

struct server_cores {
	struct server_cores_config config;
	struct chain *chain;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool paused, stopped;  /* what players shall do */
	unsigned int n_paused; /* players that do */
	struct player players[CHAIN_MOST_CORES];
};

static void rest(void)
{
	const struct timespec moment = {.tv_nsec = SLEEP_NS};

	nanosleep(&moment, NULL);
}

static bool make_queues(struct player *player)
{
	static unsigned int n_created;
	char name[RTE_RING_NAMESIZE];

	for (int end = 0; end < 2; end++) {
		snprintf(name, sizeof(name), "left_%u", n_created++);
		player->left[end] =
			rte_ring_create(name, rte_align32pow2(player->cores->config.packets + 1),
					SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (!player->left[end]) {
			fprintf(stderr, "no memory for a queue: %s\n", rte_strerror(rte_errno));
			return false;
		}
	}
	return true;
}

struct server_cores *server_cores_create(const struct server_cores_config *config)
{
	struct server_cores *cores = nf_zalloc_for("cores", sizeof(*cores));

	if (!cores)
		return NULL;
	cores->config = *config;
	pthread_mutex_init(&cores->lock, NULL);
	pthread_cond_init(&cores->changed, NULL);
	for (unsigned int core = 1; core < config->n; core++) {
		cores->players[core].cores = cores;
		cores->players[core].core = core;
		if (make_queues(&cores->players[core]))
			continue;
		server_cores_destroy(cores);
		return NULL;
	}
	return cores;
}

void server_cores_destroy(struct server_cores *cores)
{
	if (!cores)
		return;
	for (unsigned int core = 1; core < cores->config.n; core++)
		for (int end = 0; end < 2; end++)
			rte_ring_free(cores->players[core].left[end]);
	pthread_cond_destroy(&cores->changed);
	pthread_mutex_destroy(&cores->lock);
	nf_free(cores);
}

void server_cores_take(void *state, unsigned int core, enum chain_end end,
		       struct rte_mbuf **packets, uint16_t n)
{
	struct server_cores *cores = state;

	if (core == 0) {
		cores->config.sink(cores->config.state, end, packets, n);
		return;
	}
	/* there is room for all, unless functions have packets from pools of their own */
	while (rte_ring_enqueue_bulk(cores->players[core].left[end], (void **)packets, n, NULL) ==
	       0)
		rest();
}

/* Wait while all players are to pause; false if they are to stop. */
static bool may_go_on(struct server_cores *cores)
{
	bool go_on;

	if (likely(!__atomic_load_n(&cores->paused, __ATOMIC_ACQUIRE)))
		return true;
	pthread_mutex_lock(&cores->lock);
	cores->n_paused++;
	pthread_cond_broadcast(&cores->changed);
	while (cores->paused && !cores->stopped)
		pthread_cond_wait(&cores->changed, &cores->lock);
	cores->n_paused--;
	go_on = !cores->stopped;
	pthread_mutex_unlock(&cores->lock);
	return go_on;
}

/* Failing to pin or register is no fault: the thread is slower. */
static void settle(const struct player *player)
{
	const int *pins = player->cores->config.pins;
	cpu_set_t processor;

	if (pins) {
		CPU_ZERO(&processor);
		CPU_SET(pins[player->core], &processor);
		if (pthread_setaffinity_np(pthread_self(), sizeof(processor), &processor) != 0)
			fprintf(stderr, "core %u cannot run on processor %d\n", player->core,
				pins[player->core]);
	}
	if (player->core > 0)
		(void)rte_thread_register(); /* for the caches of memory pools */
}

static void *play(void *argument)
{
	struct player *player = argument;
	struct server_cores *cores = player->cores;

	settle(player);
	while (may_go_on(cores)) {
		const uint64_t now_us = __atomic_load_n(cores->config.now_us, __ATOMIC_RELAXED);

		if (chain_step(cores->chain, player->core, now_us) == 0)
			rest();
	}
	rte_thread_unregister();
	return NULL;
}

bool server_cores_start(struct server_cores *cores, struct chain *chain)
{
	cores->chain = chain;
	settle(&(struct player){.cores = cores, .core = 0});
	for (unsigned int core = 1; core < cores->config.n; core++) {
		struct player *player = &cores->players[core];
		const int error = pthread_create(&player->thread, NULL, play, player);

		if (error) {
			fprintf(stderr, "no thread for core %u: %s\n", core, strerror(error));
			return false;
		}
		player->started = true;
	}
	return true;
}

unsigned int server_cores_collect(struct server_cores *cores)
{
	unsigned int collected = 0;

	for (unsigned int core = 1; core < cores->config.n; core++)
		for (int end = 0; end < 2; end++) {
			struct rte_mbuf *packets[NF_BURST];
			unsigned int n;

			while ((n = rte_ring_dequeue_burst(cores->players[core].left[end],
							   (void **)packets, NF_BURST, NULL))) {
				cores->config.sink(cores->config.state, (enum chain_end)end,
						   packets, (uint16_t)n);
				collected += n;
			}
		}
	return collected;
}

static unsigned int started(const struct server_cores *cores)
{
	unsigned int n = 0;

	for (unsigned int core = 1; core < cores->config.n; core++)
		n += cores->players[core].started;
	return n;
}

void server_cores_pause(struct server_cores *cores, bool paused)
{
	pthread_mutex_lock(&cores->lock);
	__atomic_store_n(&cores->paused, paused, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&cores->changed);
	while (paused && cores->n_paused < started(cores))
		pthread_cond_wait(&cores->changed, &cores->lock);
	pthread_mutex_unlock(&cores->lock);
}

void server_cores_flush(struct server_cores *cores)
{
	/* a player that pauses must not keep another one waiting for room in its ring */
	while (started(cores) > 0 && !chain_is_quiet(cores->chain)) {
		chain_step(cores->chain, 0, *cores->config.now_us);
		server_cores_collect(cores);
		rest();
	}
	server_cores_pause(cores, true);
	chain_flush(cores->chain, *cores->config.now_us);
	server_cores_pause(cores, false);
	server_cores_collect(cores);
}

void server_cores_stop(struct server_cores *cores)
{
	if (!cores)
		return;
	pthread_mutex_lock(&cores->lock);
	cores->stopped = true;
	__atomic_store_n(&cores->paused, true, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&cores->changed);
	pthread_mutex_unlock(&cores->lock);
	for (unsigned int core = 1; core < cores->config.n; core++) {
		if (cores->players[core].started)
			pthread_join(cores->players[core].thread, NULL);
		cores->players[core].started = false;
	}
}

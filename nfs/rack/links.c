#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "rack/link.h"
#include "rack/link_file.h"

/* A message that was received while its process waited to send. */
struct kept {
	struct kept *next;
	struct link_message message;
	uint8_t bytes[];
};

struct link {
	char *path;
	int descriptor;
	enum link_side side;
	struct link_file *file;
	struct link_ring *in, *out;
	struct kept *first, **last;
	uint64_t sent, received;
	uint64_t opened_ns;
	bool ended; /* LINK_END came */
};

struct links {
	const volatile sig_atomic_t *stop;
	struct link links[LINKS_MOST];
	int n;
	struct link *held;      /* whose slot the caller reads */
	struct kept *held_kept; /* or the kept message that it reads */
	unsigned int sleeps;
	bool stay; /* who is gone comes back */
	bool failed;
	uint8_t waiting[LINK_MOST_BYTES]; /* what waits for room */
};

#define SLEEP_NS 50000
/* The other ends are looked at in one of so many sleeps: it takes a system call each. */
#define SLEEPS_PER_LOOK 64

struct links *links_create(const volatile sig_atomic_t *stop)
{
	struct links *links = calloc(1, sizeof(*links));

	if (links)
		links->stop = stop;
	return links;
}

void links_stay(struct links *links, bool stay)
{
	links->stay = stay;
}

/* Let the slot or the kept message go that the caller received last. */
static void links_release(struct links *links)
{
	if (links->held) {
		atomic_store_explicit(&links->held->file->at_work[links->held->side], 0,
				      memory_order_relaxed);
		atomic_fetch_add_explicit(&links->held->in->head, 1, memory_order_release);
	}
	free(links->held_kept);
	links->held = NULL;
	links->held_kept = NULL;
}

void links_destroy(struct links *links)
{
	if (!links)
		return;
	links_release(links);
	for (int i = 0; i < links->n; i++) {
		struct link *link = &links->links[i];

		while (link->first) {
			struct kept *kept = link->first;

			link->first = kept->next;
			free(kept);
		}
		link_file_unmap(link->file, link->side, link->descriptor);
		free(link->path);
	}
	free(links);
}

int links_open(struct links *links, const char *path, enum link_side side)
{
	struct link *link = &links->links[links->n];

	if (links->n == LINKS_MOST) {
		fprintf(stderr, "%s: a process has at most %d links\n", path, LINKS_MOST);
		return -1;
	}
	link->path = strdup(path);
	if (!link->path)
		return -1;
	link->file = link_file_map(path, side, links->stay, &link->descriptor);
	if (!link->file) {
		free(link->path);
		return -1;
	}
	link->side = side;
	link->out = &link->file->rings[side];
	link->in = &link->file->rings[!side];
	link->last = &link->first;
	link->opened_ns = clock_ns();
	return links->n++;
}

/* Print why links fail, once; false. */
static bool link_fail(struct links *links, const struct link *link, const char *why)
{
	if (!links->failed)
		fprintf(stderr, "%s: %s\n", link->path, why);
	links->failed = true;
	return false;
}

/* Whether a ring holds no message. */
static inline bool link_is_empty(struct link_ring *ring)
{
	return atomic_load_explicit(&ring->tail, memory_order_acquire) ==
	       atomic_load_explicit(&ring->head, memory_order_relaxed);
}

/* The next message in the ring, which stays there; the other process is not trusted. */
static bool link_look(struct links *links, struct link *link, struct link_message *message)
{
	struct link_ring *ring = link->in;
	const struct link_slot *slot;

	if (links->failed || link_is_empty(ring))
		return false;
	slot = &ring->slots[atomic_load_explicit(&ring->head, memory_order_relaxed) % LINK_SLOTS];
	*message = (struct link_message){
		.kind = slot->kind,
		.length = slot->length,
		.port = slot->port,
		.time_us = slot->time_us,
		.bytes = slot->bytes,
	};
	if (message->kind < LINK_KINDS && message->length <= LINK_MOST_BYTES &&
	    (message->kind != LINK_FLUSH || message->length == sizeof(uint64_t)))
		return true;
	return link_fail(links, link, "the process at the other end sent what is no message");
}

/* Waiting for room, for messages, and for the process at the other end. */

/* Move what can be received into lists, so that no process waits for this one. */
static bool keep_arrivals(struct links *links)
{
	struct link_message message;

	for (int i = 0; i < links->n; i++) {
		struct link *link = &links->links[i];

		while (link_look(links, link, &message)) {
			struct kept *kept = malloc(sizeof(*kept) + message.length);

			if (!kept)
				return link_fail(links, link, "no memory for packets that wait");
			memcpy(kept->bytes, message.bytes, message.length);
			kept->message = message;
			kept->message.bytes = kept->bytes;
			kept->next = NULL;
			*link->last = kept;
			link->last = &kept->next;
			atomic_fetch_add_explicit(&link->in->head, 1, memory_order_release);
		}
	}
	return !links->failed;
}

/* Why nobody sends or receives at the other end of a link any more; NULL if somebody may. */
static const char *why_gone(const struct link *link)
{
	const enum link_side other = !link->side;

	switch (atomic_load(&link->file->use[other])) {
	case LINK_NEVER_OPENED:
		return clock_ns() - link->opened_ns < LINK_PATIENCE_S * UINT64_C(1000000000)
			       ? NULL
			       : "no process opened the other end in 30 s";
	case LINK_OPEN:
		if (link_file_is_locked(link->descriptor, other))
			return NULL;
		/* it may have left, in order, since its use was read */
		if (atomic_load(&link->file->use[other]) == LINK_OPEN)
			return "the process at the other end died";
		/* fall through */
	default:
		return "the process at the other end has left";
	}
}

static bool is_alive(struct links *links, const struct link *link)
{
	const char *why = links->stay ? NULL : why_gone(link);

	return !why || link_fail(links, link, why);
}

/* Sleep for a moment; true when it is time to look at the other ends. */
static bool rest(struct links *links)
{
	const struct timespec moment = {.tv_nsec = SLEEP_NS};

	nanosleep(&moment, NULL);
	return ++links->sleeps % SLEEPS_PER_LOOK == 0;
}

static bool is_stopped(const struct links *links)
{
	return links->stop && *links->stop;
}

static bool has_room(const struct link *link)
{
	const uint64_t tail = atomic_load_explicit(&link->out->tail, memory_order_relaxed);

	return tail - atomic_load_explicit(&link->out->head, memory_order_acquire) < LINK_SLOTS;
}

/*
 * Wait until a link has room for a message, whose bytes may be those of a received one: then they
 * are copied, for that one must make room. False if the message cannot be sent.
 */
static bool link_wait_for_room(struct links *links, struct link *link, struct link_message *message)
{
	if (!has_room(link) && message->length > 0) {
		memcpy(links->waiting, message->bytes, message->length);
		message->bytes = links->waiting;
	}
	if (!has_room(link))
		links_release(links);
	while (!has_room(link)) {
		if (is_stopped(links) || !keep_arrivals(links))
			return false;
		if (rest(links) && !is_alive(links, link))
			return false;
	}
	return !links->failed;
}

/* What is there can still be received, even from a process that is gone. */
static bool all_are_alive(struct links *links)
{
	for (int i = 0; i < links->n; i++) {
		struct link *link = &links->links[i];
		const char *why = links->stay || link->ended || link->first ? NULL : why_gone(link);

		/* looked at afterwards: its last message may have come meanwhile */
		if (why && link_is_empty(link->in))
			return link_fail(links, link, why);
	}
	return true;
}

bool links_idle(struct links *links)
{
	links_release(links);
	if (is_stopped(links) || links->failed)
		return false;
	return !rest(links) || all_are_alive(links);
}

bool links_meet(struct links *links)
{
	for (int i = 0; i < links->n; i++) {
		const struct link *link = &links->links[i];

		while (atomic_load(&link->file->use[!link->side]) == LINK_NEVER_OPENED) {
			if (is_stopped(links) || !is_alive(links, link))
				return false;
			rest(links);
		}
	}
	return true;
}

bool links_send(struct links *links, int to, const struct link_message *sent)
{
	struct link *link = &links->links[to];
	struct link_message message = *sent;
	struct link_slot *slot;
	uint64_t tail;

	if (message.length > LINK_MOST_BYTES)
		return link_fail(links, link, "a packet is longer than 4,080 bytes");
	if (!link_wait_for_room(links, link, &message))
		return false;
	tail = atomic_load_explicit(&link->out->tail, memory_order_relaxed);
	slot = &link->out->slots[tail % LINK_SLOTS];
	slot->length = message.length;
	slot->kind = (uint16_t)message.kind;
	slot->port = message.port;
	slot->time_us = message.time_us;
	if (message.length > 0)
		memcpy(slot->bytes, message.bytes, message.length);
	atomic_store_explicit(&link->out->tail, tail + 1, memory_order_release);
	link->sent += message.kind == LINK_PACKET;
	links_release(links);
	return true;
}

bool links_send_flush(struct links *links, int to, uint64_t round)
{
	const struct link_message message = {
		.kind = LINK_FLUSH,
		.length = sizeof(round),
		.bytes = (const uint8_t *)&round,
	};

	return links_send(links, to, &message);
}

bool links_send_end(struct links *links, int to)
{
	return links_send(links, to, &(struct link_message){.kind = LINK_END});
}

uint64_t link_round(const struct link_message *message)
{
	uint64_t round = 0;

	memcpy(&round, message->bytes, sizeof(round));
	return round;
}

bool links_receive(struct links *links, int from, struct link_message *message)
{
	struct link *link = &links->links[from];
	struct kept *kept = link->first;

	links_release(links);
	if (kept) {
		link->first = kept->next;
		if (!link->first)
			link->last = &link->first;
		*message = kept->message;
		links->held_kept = kept;
	} else if (link_look(links, link, message)) {
		links->held = link;
		atomic_store_explicit(&link->file->at_work[link->side], 1, memory_order_relaxed);
	} else {
		return false;
	}
	link->received += message->kind == LINK_PACKET;
	link->ended |= message->kind == LINK_END;
	return true;
}

uint64_t links_sent(const struct links *links, int link)
{
	return links->links[link].sent;
}

uint64_t links_received(const struct links *links, int link)
{
	return links->links[link].received;
}

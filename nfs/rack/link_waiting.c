/* Waiting for room, for messages, and for the process at the other end. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "rack/links.h"

#define SLEEP_NS 50000
/* The other ends are looked at in one of so many sleeps: it takes a system call each. */
#define SLEEPS_PER_LOOK 64

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
	const char *why = why_gone(link);

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

/* The bytes to send may be those of a received message, which must make room now. */
bool link_wait_for_room(struct links *links, struct link *link, struct link_message *message)
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
		const char *why = link->ended || link->first ? NULL : why_gone(link);

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

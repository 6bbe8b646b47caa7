/* Inside of links. */
#pragma once

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
	bool failed;
	uint8_t waiting[LINK_MOST_BYTES]; /* what waits for room */
};

/* Let the slot or the kept message go that the caller received last. */
void links_release(struct links *links);

/* Whether a ring holds no message. */
static inline bool link_is_empty(struct link_ring *ring)
{
	return atomic_load_explicit(&ring->tail, memory_order_acquire) ==
	       atomic_load_explicit(&ring->head, memory_order_relaxed);
}

/* The next message in the ring, which stays there; the other process is not trusted. */
bool link_look(struct links *links, struct link *link, struct link_message *message);

/* Print why links fail, once; false. */
bool link_fail(struct links *links, const struct link *link, const char *why);

/*
 * Wait until a link has room for a message, whose bytes may be those of a received one: then they
 * are copied, for that one must make room. False if the message cannot be sent.
 */
bool link_wait_for_room(struct links *links, struct link *link, struct link_message *message);

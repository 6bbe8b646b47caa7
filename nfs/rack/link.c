#include "rack/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "rack/links.h"

struct links *links_create(const volatile sig_atomic_t *stop)
{
	struct links *links = calloc(1, sizeof(*links));

	if (links)
		links->stop = stop;
	return links;
}

/* The caller has read the message that it received last. */
void links_release(struct links *links)
{
	if (links->held)
		atomic_fetch_add_explicit(&links->held->in->head, 1, memory_order_release);
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
	link->file = link_file_map(path, side, &link->descriptor);
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

bool link_fail(struct links *links, const struct link *link, const char *why)
{
	if (!links->failed)
		fprintf(stderr, "%s: %s\n", link->path, why);
	links->failed = true;
	return false;
}

/* The next message in the ring, which stays there; the other process is not trusted. */
bool link_look(struct links *links, struct link *link, struct link_message *message)
{
	struct link_ring *ring = link->in;
	const struct link_slot *slot;

	if (links->failed || link_is_empty(ring))
		return false;
	slot = &ring->slots[atomic_load_explicit(&ring->head, memory_order_relaxed) % LINK_SLOTS];
	*message = (struct link_message){
		.kind = slot->kind,
		.length = slot->length,
		.time_us = slot->time_us,
		.bytes = slot->bytes,
	};
	if (message->kind < LINK_KINDS && message->length <= LINK_MOST_BYTES &&
	    (message->kind != LINK_FLUSH || message->length == sizeof(uint64_t)))
		return true;
	return link_fail(links, link, "the process at the other end sent what is no message");
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
	slot->zero = 0;
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

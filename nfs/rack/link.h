/*
 * Links between the processes of a rack: packets in shared memory, without loss.
 *
 * A link is one file with two rings, one per direction, each with one sender and one receiver. The
 * process that comes first creates the file. Side A is that of the switch (or, between a SmartNIC
 * and its host, of the SmartNIC), side B the other one.
 *
 *     struct links *links = links_create(&interrupted);
 *     int wire = links_open(links, "s0.link", LINK_B);
 *
 *     while (wire >= 0) {
 *             struct link_message message;
 *
 *             if (!links_receive(links, wire, &message)) {
 *                     if (!links_idle(links))
 *                             break;
 *             } else if (message.kind == LINK_END) {
 *                     break;
 *             } else if (!links_send(links, wire, &message)) {
 *                     break;
 *             }
 *     }
 *     links_destroy(links);
 *
 * A sender waits for room. Meanwhile it receives from all links of its process into lists of its
 * own: else two processes could each wait for the other. A process that waits sleeps; it
 * notices when the process at the other end dies, or never comes.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define LINK_SLOTS 1024
#define LINK_SLOT_BYTES 4096
/* Of a packet: the rest of a slot is its header. */
#define LINK_MOST_BYTES (LINK_SLOT_BYTES - 16)
/* Links of one process. */
#define LINKS_MOST 64
/* How long the process at the other end may take to come. */
#define LINK_PATIENCE_S 30

enum link_side { LINK_A, LINK_B };

enum link_kind {
	LINK_PACKET,
	LINK_FLUSH, /* its bytes are the number of the round, a uint64_t */
	LINK_END,   /* no bytes; nothing follows */
	LINK_KINDS,
};

struct link_message {
	enum link_kind kind;
	uint32_t length;
	uint16_t port;        /* of a packet on the link between a switch and its rules */
	uint64_t time_us;     /* when the packet came in from the world */
	const uint8_t *bytes; /* of a received message: until the next call with these links */
};

struct links;

/* All links of a process. Waiting ends once `*stop` is not 0. NULL without memory. */
struct links *links_create(const volatile sig_atomic_t *stop);
/* Leave all links: no other end goes on waiting. */
void links_destroy(struct links *links);
/*
 * Whether the process at the other end of a link may die, and come back: then links wait for it.
 * A process that opens its links so takes the place of one that died.
 */
void links_stay(struct links *links, bool stay);

/*
 * Open one side of a link. Its number, from 0 in the order of opening; -1 after printing why: the
 * file is no link, or that side is open in another process.
 */
int links_open(struct links *links, const char *path, enum link_side side);

/* Wait until another process opened the other end of each link. False after printing why. */
bool links_meet(struct links *links);

/*
 * Send a message; its bytes are copied, and may be those of a message just received. False if it
 * cannot be sent: stopped, or, after printing why, the other end is gone, or it is longer than
 * LINK_MOST_BYTES.
 */
bool links_send(struct links *links, int link, const struct link_message *message);
bool links_send_flush(struct links *links, int link, uint64_t round);
bool links_send_end(struct links *links, int link);

/* Receive a message if one is there. */
bool links_receive(struct links *links, int link, struct link_message *message);
/* The round of a LINK_FLUSH. */
uint64_t link_round(const struct link_message *message);

/*
 * Sleep for a moment, when nothing can be received. False if nothing ever will: stopped, or, after
 * printing why, the process at the other end of a link that did not send LINK_END is gone, or sent
 * what is no message.
 */
bool links_idle(struct links *links);

/* Packets, without other messages. */
uint64_t links_sent(const struct links *links, int link);
uint64_t links_received(const struct links *links, int link);

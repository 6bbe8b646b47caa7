/* The file of a link, mapped into memory: what both processes see. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rack/link.h"

struct link_slot {
	uint32_t length;
	uint16_t kind;
	uint16_t port;
	uint64_t time_us;
	uint8_t bytes[LINK_MOST_BYTES];
};

/* Both count messages since the link was made; a slot's place is its number modulo LINK_SLOTS. */
struct link_ring {
	_Alignas(64) _Atomic uint64_t tail; /* sent */
	_Alignas(64) _Atomic uint64_t head; /* received */
	_Alignas(4096) struct link_slot slots[LINK_SLOTS];
};

/* How a side is used; a side that is open is also locked, so that its death shows. */
enum link_use { LINK_NEVER_OPENED, LINK_OPEN, LINK_LEFT };

struct link_file {
	uint64_t magic;
	_Atomic uint32_t use[2]; /* enum link_use, by side */
	_Atomic uint32_t at_work[2]; /* whether a side works on the next message of its ring */
	struct link_ring rings[2]; /* by the side that sends */
};

/*
 * Map a file, made if it does not exist or if an earlier pair of processes left it, and lock one
 * side of it. `*descriptor` holds the lock. NULL after printing why.
 *
 * With `rejoin` a process goes on where one that died on this side stopped, behind the message that
 * it worked on.
 */
struct link_file *link_file_map(const char *path, enum link_side side, bool rejoin,
				int *descriptor);
void link_file_unmap(struct link_file *file, enum link_side side, int descriptor);

/* Make a file that no process has open; false after printing why not. */
bool link_file_make(const char *path);

/* Whether a process has this side open: false too when it died. */
bool link_file_is_locked(int descriptor, enum link_side side);

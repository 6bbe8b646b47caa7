/* Hardware events of the calling thread, where the machine shows them; most virtual ones do not. */
#ifndef NFS_TESTBED_HARDWARE_EVENTS_H
#define NFS_TESTBED_HARDWARE_EVENTS_H

#include <stdint.h>

enum hardware_event {
	HARDWARE_INSTRUCTIONS,
	HARDWARE_L1_READ_MISSES,
	HARDWARE_L1_WRITE_MISSES,
	HARDWARE_LAST_READ_MISSES,
	HARDWARE_LAST_WRITE_MISSES,
	HARDWARE_EVENTS,
};

extern const char *const hardware_event_names[HARDWARE_EVENTS];

struct hardware_events {
	int files[HARDWARE_EVENTS];
};

/* Begin to count, in user space. 0, or a negative errno when the machine does not show them all. */
int hardware_events_open(struct hardware_events *events);
void hardware_events_close(struct hardware_events *events);

/* What the kernel tells of an event at a moment; times in ns. */
struct hardware_reading {
	uint64_t count, enabled;
	uint64_t running; /* on a counter: they take turns where there are too few */
};

/* 0, or a negative errno. */
int hardware_events_read(const struct hardware_events *events,
			 struct hardware_reading readings[HARDWARE_EVENTS]);

/*
 * How many there were between two readings, scaled up where events took turns. 0, or -EBUSY when
 * one of them had no turn in between.
 */
int hardware_events_between(const struct hardware_reading from[HARDWARE_EVENTS],
			    const struct hardware_reading to[HARDWARE_EVENTS],
			    double counts[HARDWARE_EVENTS]);

/* 0 when the machine shows all events, and gives each its turn; else a negative errno. */
int hardware_events_try(void);

#endif

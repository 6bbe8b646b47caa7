/* Hardware events (perf) of the calling thread; most virtual machines have none. */
#pragma once

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

/* Start counting in user space. 0, or a negative errno if the machine lacks an event. */
int hardware_events_open(struct hardware_events *events);

/* A reading of one event by the kernel; times in ns. */
struct hardware_reading {
	uint64_t count, enabled;
	uint64_t running; /* time on a hardware counter: with too few counters, events are
			     multiplexed */
};

/* 0, or a negative errno. */
int hardware_events_read(const struct hardware_events *events,
			 struct hardware_reading readings[HARDWARE_EVENTS]);

/*
 * Events between two readings, scaled up if they were multiplexed. 0, or -EBUSY if one of them was
 * never on a counter in between.
 */
int hardware_events_between(const struct hardware_reading from[HARDWARE_EVENTS],
			    const struct hardware_reading to[HARDWARE_EVENTS],
			    double counts[HARDWARE_EVENTS]);

/* 0 if the machine counts all events; else a negative errno. */
int hardware_events_try(void);

/* Hardware events of the calling thread, where the machine shows them; most virtual ones do not. */
#ifndef NFS_TESTBED_HARDWARE_EVENTS_H
#define NFS_TESTBED_HARDWARE_EVENTS_H

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

/* How many so far; scaled up where events took turns on too few counters. 0, or a negative errno.
 */
int hardware_events_read(const struct hardware_events *events, double counts[HARDWARE_EVENTS]);

#endif

/* What a SmartNIC did, as JSON. */
#pragma once

#include "rack/link.h"
#include "rack/nic_program.h"

/* Why packets are dropped without the program's doing. */
enum nic_loss { NIC_TOO_SHORT, NIC_TOO_LONG, NIC_NO_HOST, NIC_ABORTED, NIC_LOSSES };

#define NIC_NONE (-1) /* the number of a link that is not there */

struct nic {
	struct nic_program *program;
	struct links *links;
	int wire, host; /* links */
	uint64_t lost[NIC_LOSSES];
};

/* Write the report aside and rename it; false after printing why. */
bool nic_report(const struct nic *nic, const char *path, bool interrupted);

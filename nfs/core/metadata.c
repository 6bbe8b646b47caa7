#include "core/metadata.h"

#include <stdio.h>

#include <rte_errno.h>
#include <rte_mbuf_dyn.h>

/* At a fixed place, so that reading it costs no lookup of where it is. */
int metadata_register(void)
{
	static const struct rte_mbuf_dynfield field = {
		.name = "nfs_metadata",
		.size = sizeof(struct metadata),
		.align = __alignof__(struct metadata),
	};
	const size_t offset = offsetof(struct rte_mbuf, dynfield1);

	packet_flow_begin();
	if (rte_mbuf_dynfield_register_offset(&field, offset) == (int)offset)
		return 0;
	fprintf(stderr, "no room for metadata in packets: %s\n", rte_strerror(rte_errno));
	return -rte_errno;
}

#include "rack/nic_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {
	[NIC_TOO_SHORT] = "too_short",
	[NIC_TOO_LONG] = "too_long",
	[NIC_NO_HOST] = "no_host",
	[NIC_ABORTED] = "aborted",
};

static void write_links(const struct nic *nic, const char *what,
			uint64_t (*count)(const struct links *links, int link), FILE *stream)
{
	fprintf(stream, ", \"%s\": {\"wire\": %" PRIu64, what, count(nic->links, nic->wire));
	if (nic->host != NIC_NONE)
		fprintf(stream, ", \"host\": %" PRIu64, count(nic->links, nic->host));
	fputc('}', stream);
}

static bool write_report(const struct nic *nic, bool interrupted, FILE *stream)
{
	bool written;

	fprintf(stream, "{\"program\": \"nf-nic\", \"interrupted\": %s",
		interrupted ? "true" : "false");
	write_links(nic, "received", links_received, stream);
	write_links(nic, "sent", links_sent, stream);
	fputs(", \"functions\": ", stream);
	written = nic_program_write_functions(nic->program, stream);
	fputs(", \"dropped\": {", stream);
	for (int loss = 0; loss < NIC_LOSSES; loss++)
		fprintf(stream, "%s\"%s\": %" PRIu64, loss ? ", " : "", names[loss],
			nic->lost[loss]);
	written &= nic_program_write_reasons(nic->program, stream);
	fputs("}}\n", stream);
	return written;
}

bool nic_report(const struct nic *nic, const char *path, bool interrupted)
{
	char *part = NULL;
	FILE *stream;
	bool written;

	if (asprintf(&part, "%s.part", path) < 0) {
		fprintf(stderr, "nf-nic: no memory for the report\n");
		return false;
	}
	stream = fopen(part, "w");
	written = stream != NULL;
	if (stream) {
		written = write_report(nic, interrupted, stream);
		written &= !ferror(stream);
		written &= fclose(stream) == 0;
		written = written && rename(part, path) == 0;
	}
	if (!written) {
		fprintf(stderr, "nf-nic: %s: %s\n", path, strerror(errno));
		unlink(part);
	}
	free(part);
	return written;
}

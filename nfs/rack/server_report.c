#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rack/server.h"

static const char *const names[] = {
	[SERVER_TOO_LONG] = "too_long",
	[SERVER_SENT_BACK] = "sent_back",
	[SERVER_INTERRUPTED] = "interrupted",
};

/* Packets that no edge behind a Match takes: it counts them when it frees them. */
static uint64_t unmatched_by(const struct nf *nf)
{
	const struct nf_kind *kind = nf->kind;
	bool drops = false;

	if (strcmp(kind->name, "Match") != 0)
		return 0;
	for (unsigned int i = 0; i < kind->n_parameters; i++)
		if (strcmp(kind->parameters[i].name, "drop_unmatched") == 0)
			drops = nf->settings[i] == 1;
	for (unsigned int i = 0; drops && i < kind->n_counters; i++)
		if (strcmp(kind->counters[i].name, "unmatched") == 0)
			return nf->counters[i];
	return 0;
}

static void write_function(const struct chain *chain, unsigned int at, FILE *stream)
{
	const struct nf *nf = chain_function(chain, at);
	const struct chain_counts counts = chain_counts_of(chain, at);
	/* a packet that matches no edge has passed the function, and is dropped behind it */
	const uint64_t sent = counts.sent + counts.sent_back + unmatched_by(nf);

	fprintf(stream,
		"%s{\"name\": \"%s\", \"nf\": \"%s\", \"entered\": %" PRIu64 ", \"sent\": %" PRIu64
		", \"dropped\": %" PRIu64 ", \"counters\": {",
		at ? ", " : "", chain_function_name(chain, at), nf->kind->name, counts.entered,
		sent, counts.entered > sent ? counts.entered - sent : 0);
	for (unsigned int i = 0; i < nf->kind->n_counters; i++)
		fprintf(stream, "%s\"%s\": %" PRIu64, i ? ", " : "", nf->kind->counters[i].name,
			nf->counters[i]);
	fputs("}}", stream);
}

static void write_report(const struct server *server, bool interrupted, FILE *stream)
{
	const struct chain *chain = server->chain;
	uint64_t unmatched = 0;

	fprintf(stream,
		"{\"program\": \"%s\", \"interrupted\": %s, \"received\": {\"link\": %" PRIu64
		"}, \"sent\": {\"link\": %" PRIu64 "}, \"functions\": [",
		SERVER_NAME, interrupted ? "true" : "false",
		links_received(server->links, server->link),
		links_sent(server->links, server->link));
	for (unsigned int i = 0; i < chain_functions(chain); i++) {
		write_function(chain, i, stream);
		unmatched += unmatched_by(chain_function(chain, i));
	}
	fprintf(stream, "], \"dropped\": {\"unmatched\": %" PRIu64, unmatched);
	for (int loss = 0; loss < CHAIN_LOSSES; loss++)
		fprintf(stream, ", \"%s\": %" PRIu64, chain_loss_name((enum chain_loss)loss),
			chain_lost_by(chain, (enum chain_loss)loss));
	for (int loss = 0; loss < SERVER_LOSSES; loss++)
		fprintf(stream, ", \"%s\": %" PRIu64, names[loss], server->lost[loss]);
	fputs("}}\n", stream);
}

bool server_report(const struct server *server, bool interrupted)
{
	const char *path = server->options->report;
	char *part = NULL;
	FILE *stream;
	bool written;

	if (asprintf(&part, "%s.part", path) < 0)
		return false;
	stream = fopen(part, "w");
	written = stream != NULL;
	if (stream) {
		write_report(server, interrupted, stream);
		written = !ferror(stream);
		written &= fclose(stream) == 0;
		written = written && rename(part, path) == 0;
	}
	if (!written) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		unlink(part);
	}
	free(part);
	return written;
}

/*
 * nf-nic: plays a SmartNIC of a rack, between the switch and its server.
 *
 *     nf-nic --program n0.o --wire n0.link --host s0.link --report n0.json
 *
 * The kernel emulates the card: it checks the program and runs each packet through XDP. XDP_TX
 * sends a packet to the switch, XDP_PASS to the server, from wherever it came; others are dropped.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <stdio.h>

#include "core/command_line.h"
#include "rack/control.h"
#include "rack/link.h"
#include "rack/nic_attach.h"
#include "rack/nic_program.h"
#include "run/interruption.h"

/* What a SmartNIC did, as JSON. */

/* Why packets are dropped without the program's doing. */
enum nic_loss { NIC_TOO_SHORT, NIC_TOO_LONG, NIC_NO_HOST, NIC_ABORTED, NIC_LOSSES };

#define NIC_NONE (-1) /* the number of a link that is not there */

struct nic {
	struct nic_program *program, *next; /* the next one, if it is prepared */
	struct nic_attached *attached; /* where the program is attached, if it is */
	struct control control;
	struct links *links;
	int wire, host; /* links */
	uint64_t lost[NIC_LOSSES];
};

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

static bool print_report(FILE *stream, const void *state, bool interrupted)
{
	const struct nic *nic = state;
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

static bool nic_report(const struct nic *nic, const char *path, bool interrupted)
{
	return control_write_report("nf-nic", path, print_report, nic, interrupted);
}

static const char help[] =
	"Usage: nf-nic --program FILE --wire FILE [--host FILE] --report FILE\n"
	"\n"
	"Plays a SmartNIC, emulated by XDP: the kernel runs the program on each packet. Needs the\n"
	"right to load BPF programs (root, or CAP_BPF and CAP_NET_ADMIN).\n"
	"\n"
	"  --program FILE  object of the program, from clang\n"
	"  --wire FILE     link to the switch, of which this is side B\n"
	"  --host FILE     link to the server, of which this is side A; without one, packets for\n"
	"                  a server are dropped\n"
	"  --report FILE   what was done, as JSON, when the wire ends\n"
	"  --attach        attach the program to a network interface, in a namespace of its own,\n"
	"                  and let packets pass there; needs CAP_SYS_ADMIN, too\n"
	"  --control       stay up, and take orders from stdin (rack/control.h)\n"
	"  --help          this text\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted; what was done is reported.\n";

struct options {
	const char *program, *wire, *host, *report;
	bool attach, control;
};

static int read_options(struct options *options, int argc, char **argv)
{
	const struct command_option known[] = {
		{"program", .needed = true, .text = &options->program},
		{"wire", .needed = true, .text = &options->wire},
		{"host", .text = &options->host},
		{"report", .needed = true, .text = &options->report},
		{"attach", .flag = &options->attach},
		{"control", .flag = &options->control},
		{0},
	};
	const struct command_line line = {"nf-nic", help, known};

	*options = (struct options){.program = NULL};
	return command_line_read(&line, argc, argv);
}

/* Send a packet to a side, or drop it if there is none. False if the link breaks. */
static bool send_to(struct nic *nic, int link, struct link_message *message)
{
	if (link == NIC_NONE) {
		nic->lost[NIC_NO_HOST]++;
		return true;
	}
	return links_send(nic->links, link, message);
}

/* False if the kernel or a link fails. */
static bool process(struct nic *nic, const struct link_message *message)
{
	struct link_message out = {.time_us = message->time_us};
	const uint32_t most = nic->attached ? NIC_ATTACHED_MOST_BYTES : NIC_MOST_BYTES;
	struct nic_result result;

	if (message->length < NIC_LEAST_BYTES || message->length > most) {
		nic->lost[message->length < NIC_LEAST_BYTES ? NIC_TOO_SHORT : NIC_TOO_LONG]++;
		return true;
	}
	if (!(nic->attached ? nic_attached_run(nic->attached, nic->program, message->bytes,
					       message->length, message->time_us, &result)
			    : nic_program_run(nic->program, message->bytes, message->length,
					      message->time_us, &result)))
		return false;
	out.length = result.length;
	out.bytes = result.bytes;
	switch (result.action) {
	case XDP_TX:
		return send_to(nic, nic->wire, &out);
	case XDP_PASS:
		return send_to(nic, nic->host, &out);
	case XDP_DROP:
		return true; /* the program counted it */
	default:
		nic->lost[NIC_ABORTED]++;
		return true;
	}
}

/* Pass a flush on behind the packets; without a server, the switch gets it back. */
static bool flush(struct nic *nic, int from, uint64_t round)
{
	const int to = from == nic->wire && nic->host != NIC_NONE ? nic->host : nic->wire;

	return links_send_flush(nic->links, to, round);
}

enum step { NOTHING, MOVED, ENDED, BROKEN };

/* Take one message of a link. */
static enum step take(struct nic *nic, int link)
{
	struct link_message message;

	if (!links_receive(nic->links, link, &message))
		return NOTHING;
	switch (message.kind) {
	case LINK_PACKET:
		return process(nic, &message) ? MOVED : BROKEN;
	case LINK_FLUSH:
		return flush(nic, link, link_round(&message)) ? MOVED : BROKEN;
	default:
		return link == nic->wire ? ENDED : MOVED;
	}
}

/* Do what is ordered. */
static void obey(struct nic *nic, const struct options *options, enum control_order order)
{
	if (order == CONTROL_PREPARE) {
		nic_program_free(nic->next);
		nic->next = nic_program_load(CONTROL_NEXT "/nic.o");
		control_answer(nic->next != NULL);
	} else if (order == CONTROL_SWAP && nic->next &&
		   nic_program_take_over(nic->next, nic->program) &&
		   (!nic->attached || nic_attach_program(nic->attached, nic->next))) {
		nic_program_free(nic->program);
		nic->program = nic->next;
		nic->next = NULL;
		control_answer(true);
	} else if (order == CONTROL_REPORT)
		control_answer(nic_report(nic, options->report, false));
	else if (order == CONTROL_END)
		links_stay(nic->links, false); /* nobody starts the switch again */
	else
		control_answer(false);
}

/* Until the wire ends; false if a link breaks, or the program is interrupted. */
static bool loop(struct nic *nic, const struct options *options)
{
	bool idle = false;

	for (;;) {
		const enum control_order order = control_next(&nic->control, idle);
		const enum step wire = take(nic, nic->wire);
		const enum step host = nic->host == NIC_NONE ? NOTHING : take(nic, nic->host);

		if (wire == BROKEN || host == BROKEN || interrupted)
			return false;
		if (wire == ENDED)
			return nic->host == NIC_NONE || links_send_end(nic->links, nic->host);
		if (order != CONTROL_NONE)
			obey(nic, options, order);
		idle = wire == NOTHING && host == NOTHING;
		if (idle && !links_idle(nic->links))
			return false;
	}
}

static bool open_links(struct nic *nic, const struct options *options)
{
	nic->links = links_create(&interrupted);
	if (!nic->links) {
		fprintf(stderr, "nf-nic: no memory for links\n");
		return false;
	}
	links_stay(nic->links, options->control);
	nic->wire = links_open(nic->links, options->wire, LINK_B);
	nic->host = options->host ? links_open(nic->links, options->host, LINK_A) : NIC_NONE;
	return nic->wire >= 0 && (!options->host || nic->host >= 0);
}

static int run(struct nic *nic, const struct options *options)
{
	bool ended = links_meet(nic->links);

	if (ended && options->control)
		control_begin(&nic->control);
	ended = ended && loop(nic, options);

	if (!nic_report(nic, options->report, interrupted != 0))
		return FAILED;
	if (ended)
		return DONE;
	return interrupted ? INTERRUPTED : FAILED;
}

int main(int argc, char **argv)
{
	struct options options;
	struct nic nic = {.wire = NIC_NONE, .host = NIC_NONE};
	int result = read_options(&options, argc, argv);

	if (result != COMMAND_LINE_READ)
		return result;
	result = BAD_INPUT;
	catch_interrupts();
	nic.program = nic_program_load(options.program);
	if (nic.program && options.attach) {
		nic.attached = nic_attach_open();
		if (!nic.attached || !nic_attach_program(nic.attached, nic.program))
			result = FAILED;
	}
	if (nic.program && result == BAD_INPUT && open_links(&nic, &options))
		result = run(&nic, &options);
	if (nic.links)
		links_destroy(nic.links);
	nic_attach_close(nic.attached);
	nic_program_free(nic.next);
	nic_program_free(nic.program);
	return result;
}

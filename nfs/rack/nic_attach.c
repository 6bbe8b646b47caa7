#include "rack/nic_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "rack/interface.h"

#define WIRE "wire" /* where packets come from, and XDP_TX sends them to */
#define CARD "card" /* where the program is */
#define MTU "3500"  /* of packets of NIC_ATTACHED_MOST_BYTES, which fit a page with XDP's room */
#define LOOK_NS 20000
#define LOOKS_AFTER_DROP 20 /* before a packet whose drop was counted is taken for gone */
#define MOST_LOOKS 10000    /* about 1 s: then the kernel has dropped it, as it does short tagged frames */

struct nic_attached {
	struct interface *wire, *card;
	int card_index;
	int passing; /* a program that lets all pass: a pair needs one at both ends */
};

/* Run `ip` with arguments; false after printing why. */
static bool run_ip(char *const arguments[])
{
	extern char **environ;
	pid_t child;
	int status;
	const int error = posix_spawnp(&child, "ip", NULL, NULL, arguments, environ);

	if (error) {
		fprintf(stderr, "nf-nic: ip: %s\nhint: apt-get install iproute2\n", strerror(error));
		return false;
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return status == 0;
}

/* Keep the kernel from sending packets of its own. */
static void disable_ipv6(void)
{
	const int file = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC);

	if (file < 0)
		return;
	if (write(file, "1", 1) < 0)
		fprintf(stderr, "nf-nic: IPv6: %s\n", strerror(errno));
	close(file);
}

static bool make_pair(void)
{
	char *const add[] = {"ip",   "link", "add",	 WIRE,	 "mtu", MTU,   "type", "veth",
			     "peer", "name", CARD, "mtu", MTU, NULL};
	char *const set_wire[] = {"ip", "link", "set", WIRE, "up", NULL};
	char *const set_card[] = {"ip", "link", "set", CARD, "up", NULL};

	/* the second one sends at once; the first would only a moment after it has its peer */
	return run_ip(add) && run_ip(set_card) && run_ip(set_wire);
}

static bool attach(int index, int program)
{
	const int error = bpf_xdp_attach(index, program, XDP_FLAGS_DRV_MODE, NULL);

	if (error < 0)
		fprintf(stderr, "nf-nic: the kernel does not attach the program: %s\n",
			strerror(-error));
	return error == 0;
}

static int load_passing(void)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "pass", "GPL", instructions, 2, NULL);
}

struct nic_attached *nic_attach_open(void)
{
	struct nic_attached *attached = calloc(1, sizeof(*attached));

	if (!attached)
		return NULL;
	attached->passing = -1;
	if (unshare(CLONE_NEWNET) < 0) {
		fprintf(stderr,
			"nf-nic: a network namespace for --attach: %s\n"
			"hint: root may make one; without --attach no interface is needed\n",
			strerror(errno));
		nic_attach_close(attached);
		return NULL;
	}
	disable_ipv6();
	if (make_pair()) {
		attached->card_index = (int)if_nametoindex(CARD);
		attached->passing = load_passing();
		if (attached->passing >= 0 && attach((int)if_nametoindex(WIRE), attached->passing)) {
			attached->wire = interface_open(WIRE, true);
			attached->card = interface_open(CARD, true);
		}
	}
	if (attached->wire && attached->card)
		return attached;
	nic_attach_close(attached);
	return NULL;
}

bool nic_attach_program(struct nic_attached *attached, struct nic_program *program)
{
	return attach(attached->card_index, nic_program_descriptor(program));
}

bool nic_attached_run(struct nic_attached *attached, struct nic_program *program,
		      const uint8_t *bytes, uint32_t length, uint64_t time_us,
		      struct nic_result *result)
{
	const struct timespec moment = {.tv_nsec = LOOK_NS};
	uint64_t before, dropped;
	unsigned int looks_after_drop = 0;

	/* nothing that comes late is taken for this packet */
	while (interface_receive(attached->wire, &result->length) ||
	       interface_receive(attached->card, &result->length))
		;
	if (!nic_program_set_clock(program, time_us) || !nic_program_dropped(program, &before))
		return false;
	if (!interface_send(attached->wire, bytes, length)) {
		fprintf(stderr, "nf-nic: the interface does not take a packet of %u bytes: %s\n",
			length, strerror(errno));
		return false;
	}
	for (unsigned int look = 0; look < MOST_LOOKS; look++) {
		*result = (struct nic_result){.action = XDP_TX};
		result->bytes = interface_receive(attached->wire, &result->length);
		if (result->bytes)
			return true;
		result->action = XDP_PASS;
		result->bytes = interface_receive(attached->card, &result->length);
		if (result->bytes)
			return true;
		if (!nic_program_dropped(program, &dropped))
			return false;
		result->action = XDP_DROP;
		/* while the program runs, a packet has entered a function and not left it yet */
		looks_after_drop = dropped == before ? 0 : looks_after_drop + 1;
		if (looks_after_drop == LOOKS_AFTER_DROP)
			return true;
		nanosleep(&moment, NULL);
	}
	result->action = XDP_ABORTED;
	return true;
}

void nic_attach_close(struct nic_attached *attached)
{
	if (!attached)
		return;
	interface_close(attached->wire);
	interface_close(attached->card);
	if (attached->passing >= 0)
		close(attached->passing);
	free(attached);
}

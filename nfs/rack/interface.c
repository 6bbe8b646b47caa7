#include "rack/interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rack/link.h"

/* What waits while tables are replaced or a device is started again. */
#define QUEUE_BYTES (64 << 20)
#define ADDRESSES_BYTES 12
#define TAG_BYTES 4
/* How long a full queue of the interface may keep a frame from leaving. */
#define SEND_PATIENCE_MS 100

struct interface {
	int socket;
	unsigned int index;
	bool down, gone;
	char name[IF_NAMESIZE];
	uint64_t missed;
	/* room for a tag that the kernel took off stands in front */
	uint8_t bytes[TAG_BYTES + LINK_MOST_BYTES + 1];
};

static struct interface *refuse(struct interface *interface, const char *name, const char *why)
{
	fprintf(stderr, INTERFACE_PREFIX "%s: %s\n%s", name, why,
		errno == EPERM ? "hint: it needs the privilege CAP_NET_RAW\n" : "");
	interface_close(interface);
	return NULL;
}

static bool set(const struct interface *interface, int option, int value)
{
	return setsockopt(interface->socket, SOL_PACKET, option, &value, sizeof(value)) == 0;
}

struct interface *interface_open(const char *name, bool receives)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
				      .sll_protocol = receives ? htons(ETH_P_ALL) : 0};
	struct packet_mreq all = {.mr_type = PACKET_MR_PROMISC};
	struct interface *interface = calloc(1, sizeof(*interface));
	const int queue = QUEUE_BYTES;

	errno = 0;
	if (!interface)
		return NULL;
	interface->socket = -1;
	snprintf(interface->name, sizeof(interface->name), "%s", name);
	address.sll_ifindex = (int)if_nametoindex(name);
	all.mr_ifindex = address.sll_ifindex;
	interface->index = (unsigned int)address.sll_ifindex;
	if (address.sll_ifindex == 0)
		return refuse(interface, name, "no such network interface");
	/* of no protocol yet: frames of other interfaces do not come in before it is bound */
	interface->socket = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (interface->socket < 0 || !set(interface, PACKET_VNET_HDR, 1) ||
	    !set(interface, PACKET_AUXDATA, 1) || !set(interface, PACKET_IGNORE_OUTGOING, 1) ||
	    setsockopt(interface->socket, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) < 0 ||
	    bind(interface->socket, (struct sockaddr *)&address, sizeof(address)) < 0)
		return refuse(interface, name, strerror(errno));
	/* beyond the system's limit where that is allowed */
	if (setsockopt(interface->socket, SOL_SOCKET, SO_RCVBUFFORCE, &queue, sizeof(queue)) < 0)
		setsockopt(interface->socket, SOL_SOCKET, SO_RCVBUF, &queue, sizeof(queue));
	return interface;
}

void interface_close(struct interface *interface)
{
	if (!interface)
		return;
	if (interface->socket >= 0)
		close(interface->socket);
	free(interface);
}

/* The sum of RFC 1071 over bytes, complemented. */
static uint16_t internet_checksum(const uint8_t *bytes, uint32_t length)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i + 1 < length; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	if (length % 2)
		sum += (uint32_t)bytes[length - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Write a checksum that was left to hardware: the field holds the sum of the pseudo header. */
static void complete(uint8_t *frame, uint32_t length, const struct virtio_net_hdr *header)
{
	const uint32_t from = header->csum_start, at = from + header->csum_offset;
	uint16_t sum;

	if (!(header->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || at + 2 > length)
		return;
	sum = internet_checksum(frame + from, length - from);
	sum = sum ? sum : 0xffff; /* 0 is none, to UDP */
	frame[at] = (uint8_t)(sum >> 8);
	frame[at + 1] = (uint8_t)sum;
}

/* Put a tag that the kernel took off back in front of the type; the frame begins earlier then. */
static uint8_t *put_tag_back(uint8_t *frame, struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		struct tpacket_auxdata more;
		uint16_t tag[2];

		if (part->cmsg_level != SOL_PACKET || part->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&more, CMSG_DATA(part), sizeof(more));
		if (!(more.tp_status & TP_STATUS_VLAN_VALID))
			continue;
		tag[0] = htons(more.tp_status & TP_STATUS_VLAN_TPID_VALID ? more.tp_vlan_tpid
									  : ETH_P_8021Q);
		tag[1] = htons(more.tp_vlan_tci);
		memmove(frame - TAG_BYTES, frame, ADDRESSES_BYTES);
		memcpy(frame - TAG_BYTES + ADDRESSES_BYTES, tag, sizeof(tag));
		return frame - TAG_BYTES;
	}
	return frame;
}

/*
 * Nothing was received. One that is down may come up again, and its socket receives then; one that
 * is removed does not come back to it, and the kernel may only say that it is down.
 */
static void look_after(struct interface *interface, int error)
{
	char name[IF_NAMESIZE];

	interface->down |= error != EAGAIN && error != EINTR;
	if (!interface->down || interface->gone || if_indextoname(interface->index, name))
		return;
	fprintf(stderr, INTERFACE_PREFIX "%s: the network interface is gone\n", interface->name);
	interface->gone = true;
}

const uint8_t *interface_receive(struct interface *interface, uint32_t *length)
{
	uint8_t *frame = interface->bytes + TAG_BYTES;
	struct virtio_net_hdr header;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	struct iovec parts[] = {{&header, sizeof(header)}, {frame, LINK_MOST_BYTES + 1}};

	for (;;) {
		struct msghdr message = {.msg_iov = parts,
					 .msg_iovlen = 2,
					 .msg_control = control,
					 .msg_controllen = sizeof(control)};
		const ssize_t got = recvmsg(interface->socket, &message, MSG_TRUNC);
		uint8_t *begin;

		if (got < (ssize_t)sizeof(header)) {
			look_after(interface, got < 0 ? errno : EAGAIN);
			return NULL;
		}
		interface->down = false;
		*length = (uint32_t)((size_t)got - sizeof(header));
		begin = *length <= LINK_MOST_BYTES ? put_tag_back(frame, &message) : frame;
		*length += (uint32_t)(frame - begin);
		if (*length <= LINK_MOST_BYTES) {
			complete(frame, (uint32_t)((size_t)got - sizeof(header)), &header);
			return begin;
		}
		interface->missed++;
	}
}

bool interface_send(struct interface *interface, const uint8_t *bytes, uint32_t length)
{
	struct virtio_net_hdr header = {.gso_type = VIRTIO_NET_HDR_GSO_NONE};
	const struct iovec parts[] = {{&header, sizeof(header)},
				      {(void *)(uintptr_t)bytes, length}};
	struct pollfd ready = {.fd = interface->socket, .events = POLLOUT};

	for (int waited_ms = 0; waited_ms < SEND_PATIENCE_MS; waited_ms++) {
		if (writev(interface->socket, parts, 2) >= 0)
			return true;
		if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR) {
			look_after(interface, errno);
			return false;
		}
		poll(&ready, 1, 1);
	}
	return false;
}

bool interface_is_gone(const struct interface *interface)
{
	return interface->gone;
}

void interface_shut(struct interface *interface)
{
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = {.len = 1, .filter = &none};

	setsockopt(interface->socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

uint64_t interface_missed(struct interface *interface)
{
	struct tpacket_stats found;
	socklen_t length = sizeof(found);

	/* the kernel counts from the last call on */
	if (getsockopt(interface->socket, SOL_PACKET, PACKET_STATISTICS, &found, &length) == 0)
		interface->missed += found.tp_drops;
	return interface->missed;
}

#include "run/links.h"

#include <string.h>

#include <pcap/pcap.h>

#define TYPE_AT 12
#define MARK 0x06 /* first byte of an address that has a cooked header's fields */

enum { TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86dd };
enum { SLL_BYTES = 16, SLL2_BYTES = 20 };
enum { BROADCAST = 1, MULTICAST, OUTGOING = 4, ETHERNET_HARDWARE = 1, ADDRESS_BYTES = 6 };

/* What a cooked header has. */
struct cooked {
	uint8_t kind, address_bytes;
	uint16_t hardware, interface;
};

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

bool link_is_known(int link, const char **names)
{
	*names = "Ethernet, Linux cooked (SLL, SLL2) or raw IP";
	return link == DLT_EN10MB || link == DLT_LINUX_SLL || link == DLT_LINUX_SLL2 ||
	       link == DLT_RAW || link == DLT_IPV4 || link == DLT_IPV6;
}

static void put_cooked(uint8_t ethernet[LINK_ETHERNET], const struct cooked *cooked,
		       const uint8_t *address, uint16_t type)
{
	ethernet[0] = MARK | (cooked->kind == BROADCAST || cooked->kind == MULTICAST);
	ethernet[1] = (uint8_t)(cooked->kind << 4 | cooked->address_bytes);
	put16(ethernet + 2, cooked->hardware);
	put16(ethernet + 4, cooked->interface);
	memcpy(ethernet + 6, address, ADDRESS_BYTES);
	put16(ethernet + TYPE_AT, type);
}

/* The fields of a cooked header of either version; false if they do not fit an address. */
static bool read_cooked(int link, const uint8_t *bytes, struct cooked *cooked)
{
	uint16_t kind = get16(bytes), address_bytes = get16(bytes + 4);

	*cooked = (struct cooked){.hardware = get16(bytes + 2)};
	if (link == DLT_LINUX_SLL2) {
		kind = bytes[10];
		address_bytes = bytes[11];
		cooked->hardware = get16(bytes + 8);
		cooked->interface = get16(bytes + 6);
		if (get16(bytes + 4) != 0)
			return false;
	}
	cooked->kind = (uint8_t)kind;
	cooked->address_bytes = (uint8_t)address_bytes;
	return kind < 16 && address_bytes <= 8;
}

int link_to_ethernet(int link, const uint8_t *bytes, uint32_t length,
		     uint8_t ethernet[LINK_ETHERNET])
{
	const bool second = link == DLT_LINUX_SLL2;
	struct cooked cooked;

	if (link == DLT_LINUX_SLL || second) {
		const uint32_t header = second ? SLL2_BYTES : SLL_BYTES;

		if (length < header || !read_cooked(link, bytes, &cooked))
			return -1;
		put_cooked(ethernet, &cooked, bytes + (second ? 12 : 6),
			   get16(second ? bytes : bytes + 14));
		return (int)header;
	}
	if (length == 0 || (bytes[0] >> 4 != 4 && bytes[0] >> 4 != 6))
		return -1;
	memset(ethernet, 0, LINK_ETHERNET);
	ethernet[0] = MARK;
	ethernet[6] = 0x02;
	put16(ethernet + TYPE_AT, bytes[0] >> 4 == 4 ? TYPE_IPV4 : TYPE_IPV6);
	return 0;
}

int link_from_ethernet(int link, const uint8_t ethernet[LINK_ETHERNET], uint8_t header[LINK_MOST])
{
	struct cooked cooked = {OUTGOING, ADDRESS_BYTES, ETHERNET_HARDWARE, 0};
	const uint16_t type = get16(ethernet + TYPE_AT);
	const uint8_t *address = ethernet + 6;

	if (link == DLT_RAW || link == DLT_IPV4 || link == DLT_IPV6)
		return (type == TYPE_IPV4 && link != DLT_IPV6) ||
				       (type == TYPE_IPV6 && link != DLT_IPV4)
			       ? 0
			       : -1;
	if ((ethernet[0] & ~1) == MARK)
		cooked = (struct cooked){ethernet[1] >> 4, ethernet[1] & 15, get16(ethernet + 2),
					 get16(ethernet + 4)};
	memset(header, 0, LINK_MOST);
	if (link == DLT_LINUX_SLL) {
		put16(header, cooked.kind);
		put16(header + 2, cooked.hardware);
		put16(header + 4, cooked.address_bytes);
		memcpy(header + 6, address, ADDRESS_BYTES);
		put16(header + 14, type);
		return SLL_BYTES;
	}
	put16(header, type);
	put16(header + 6, cooked.interface);
	put16(header + 8, cooked.hardware);
	header[10] = cooked.kind;
	header[11] = cooked.address_bytes;
	memcpy(header + 12, address, ADDRESS_BYTES);
	return SLL2_BYTES;
}

#include "tests/url_rig.h"

#include <stdio.h>
#include <unistd.h>

void url_list_write(char path[64], const char *text)
{
	FILE *stream;

	snprintf(path, 64, "/tmp/url_filter_test_%d", getpid());
	stream = fopen(path, "w");
	assert_non_null(stream);
	assert_true(fputs(text, stream) >= 0);
	assert_int_equal(fclose(stream), 0);
}

void url_filter_make(struct rig *rig, const char *text, const char *setting, double value)
{
	char path[64];
	const bool streams = setting && strcmp(setting, "streams") == 0;
	struct nf_setting settings[] = {{"list", 0, path}, {setting, value}, {"streams", 0}};

	if (!setting)
		settings[1] = settings[2];
	url_list_write(path, text);
	rig_make(rig, "UrlFilter", settings, setting && !streams ? 3 : 2);
	unlink(path);
}

struct packet_spec url_segment(const void *payload, size_t length)
{
	return (struct packet_spec){.source = RTE_IPV4(10, 0, 0, 1),
				    .destination = RTE_IPV4(20, 0, 0, 7),
				    .source_port = 40000,
				    .destination_port = 80,
				    .protocol = IPPROTO_TCP,
				    .tcp_flags = RTE_TCP_ACK_FLAG | RTE_TCP_PSH_FLAG,
				    .payload = payload,
				    .payload_length = (uint16_t)length};
}

bool url_bytes_pass(struct rig *rig, const void *bytes, size_t length)
{
	const struct packet_spec packet_spec = url_segment(bytes, length);

	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_true(rig->out.n <= 1);
	return rig->out.n == 1;
}

bool url_text_passes(struct rig *rig, const char *text)
{
	return url_bytes_pass(rig, text, strlen(text));
}

bool url_request_passes(struct rig *rig, const char *host, const char *target)
{
	char text[MOST_TEXT];

	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nAccept: */*\r\nHost: %s\r\n\r\n", target,
		 host);
	return url_text_passes(rig, text);
}

size_t client_hello(uint8_t *bytes, const char *name)
{
	const size_t length = strlen(name);
	const uint8_t head[] = {22, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3};
	const uint8_t rest[] = {/* session */ 4,     1, 2,    3, 4,
				/* ciphers */ 0,     4, 0x13, 1, 0x13, 2,
				/* compression */ 1, 0,
				/* extensions */ 0,  0, 0xff, 1, 0,    1, 0};
	const uint8_t server_name[] = {0, 0, 0, length + 5, 0, length + 3, 0, 0, length};
	const uint8_t after[] = {0, 23, 0, 0};
	uint8_t *to = bytes;
	uint16_t extensions = 5 + sizeof(server_name) + length + sizeof(after);

	to = (uint8_t *)memcpy(to, head, sizeof(head)) + sizeof(head);
	to = (uint8_t *)memset(to, 7, 32) + 32;
	memcpy(to, rest, sizeof(rest));
	to[13] = extensions >> 8;
	to[14] = (uint8_t)extensions;
	to += sizeof(rest);
	to = (uint8_t *)memcpy(to, server_name, sizeof(server_name)) + sizeof(server_name);
	to = (uint8_t *)memcpy(to, name, length) + length;
	to = (uint8_t *)memcpy(to, after, sizeof(after)) + sizeof(after);
	bytes[3] = (uint8_t)((to - bytes - 5) >> 8);
	bytes[4] = (uint8_t)(to - bytes - 5);
	bytes[7] = (uint8_t)((to - bytes - 9) >> 8);
	bytes[8] = (uint8_t)(to - bytes - 9);
	return (size_t)(to - bytes);
}

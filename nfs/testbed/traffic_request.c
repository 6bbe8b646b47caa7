#include "testbed/traffic_request.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "core/capture.h"
#include "testbed/names.h"
#include "testbed/settings_json.h"

/* A capture has at most as many flows as packets. */
static void parse_capture(const json_t *given, struct load *load, struct faults *faults)
{
	const char *path = json_string_value(given);

	load->traffic.flows = CAPTURE_MOST;
	if (!path || strlen(path) >= sizeof(load->capture))
		fault(faults, "%s: capture is not a file name", load_name(load));
	else if (access(path, R_OK) != 0)
		fault(faults, "%s: capture %s: %s", load_name(load), path, strerror(errno));
	else if (load_alters(load))
		fault(faults, "%s: it changes payloads, which a capture does not renew",
		      load_name(load));
	else
		strcpy(load->capture, path);
}

static void parse_profile(const json_t *traffic, struct load *load, struct faults *faults)
{
	const char *name = load_name(load);

	load->traffic.flows =
		(uint32_t)number_read(traffic, &traffic_attributes[FLOWS], name, faults);
	load->traffic.packet_size =
		(uint16_t)number_read(traffic, &traffic_attributes[PACKET_SIZE], name, faults);
	if (json_object_get(traffic, "mtbr"))
		load->traffic.mtbr = number_read(traffic, &traffic_attributes[MTBR], name, faults);
	if (json_object_get(traffic, traffic_zipf.name))
		load->traffic.zipf = number_read(traffic, &traffic_zipf, name, faults);
}

bool request_traffic(const json_t *workload, struct load *load, struct faults *faults)
{
	const json_t *traffic = json_object_get(workload, "traffic");

	if (!json_is_object(traffic)) {
		fault(faults, "%s needs traffic", load_name(load));
		return false;
	}
	if (json_object_get(traffic, "capture"))
		parse_capture(json_object_get(traffic, "capture"), load, faults);
	else
		parse_profile(traffic, load, faults);
	return true;
}

/* Includes time and size of the file: after a change its events are counted again. */
static json_t *capture_json(const char *path)
{
	struct stat now = {0};

	(void)stat(path, &now);
	return json_pack("{s:s, s:I, s:I}", "capture", path, "changed_ns",
			 (json_int_t)now.st_mtim.tv_sec * 1000000000 + now.st_mtim.tv_nsec, "bytes",
			 (json_int_t)now.st_size);
}

json_t *traffic_json(const struct load *load)
{
	const struct traffic_profile *traffic = &load->traffic;

	if (load->capture[0])
		return capture_json(load->capture);
	return json_pack("{s:i, s:i, s:f, s:f}", "flows", (int)traffic->flows, "packet_size",
			 (int)traffic->packet_size, "mtbr", traffic->mtbr, "zipf", traffic->zipf);
}


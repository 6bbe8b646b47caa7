/* Compresses payloads with zlib: raw DEFLATE (RFC 1951), each payload by itself. */
#include <errno.h>
#include <stdio.h>

#include <zlib.h>

#include "accelerators/accelerator.h"
#include "core/memory.h"

#define RAW_WINDOW (-15) /* 32 KB window, without zlib's header and checksum */
#define MEMORY_LEVEL 8   /* zlib's default */

static void *create(void)
{
	z_stream *stream = nf_zalloc(sizeof(*stream));
	int error = Z_MEM_ERROR;

	if (stream)
		error = deflateInit2(stream, Z_BEST_SPEED, Z_DEFLATED, RAW_WINDOW, MEMORY_LEVEL,
				     Z_DEFAULT_STRATEGY);
	if (error != Z_OK) {
		fprintf(stderr, "deflate: cannot start zlib: error %d\n", error);
		nf_free(stream);
		return NULL;
	}
	return stream;
}

static enum backend_status submit(void *state, struct accelerator_job *job)
{
	z_stream *stream = state;
	int error = deflateReset(stream);

	backend_begin(job);
	stream->next_in = (Bytef *)(uintptr_t)job->input;
	stream->avail_in = job->length;
	stream->next_out = job->output;
	stream->avail_out = job->room;
	if (error == Z_OK)
		error = deflate(stream, Z_FINISH);
	if (error == Z_STREAM_END) {
		job->produced = job->room - stream->avail_out;
		job->status = 0;
	} else {
		job->status = stream->avail_out == 0 ? -ENOSPC : -EIO;
	}
	return BACKEND_DONE;
}

static void destroy(void *state)
{
	deflateEnd(state);
	nf_free(state);
}

BACKEND(backend, "deflate", "zlib, on the serving core", .kind = ACCELERATOR_COMPRESSION,
	.preference = 10, .create = create, .submit = submit, .destroy = destroy)

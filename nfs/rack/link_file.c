#include "rack/link_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x316b6e696c73666eull /* "nfslink1" */

/* Bytes of the file that are locked: one per side, one while a file is made. */
enum { LOCK_MAKING = 2 };

static struct flock lock_of(short type, off_t byte)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
}

bool link_file_is_locked(int descriptor, enum link_side side)
{
	struct flock lock = lock_of(F_WRLCK, side);

	return fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static bool refuse(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s\n", path, why);
	return false;
}

/* The file has its size: that of a new one is set, and all of it is zero. */
static bool size_is_right(int descriptor, const char *path)
{
	struct stat found;

	if (fstat(descriptor, &found) < 0)
		return refuse(path, strerror(errno));
	if (S_ISREG(found.st_mode) && found.st_size == 0) {
		if (ftruncate(descriptor, sizeof(struct link_file)) == 0)
			return true;
		return refuse(path, strerror(errno));
	}
	if (S_ISREG(found.st_mode) && found.st_size == (off_t)sizeof(struct link_file))
		return true;
	refuse(path, "is not a link");
	fprintf(stderr, "hint: name a file that does not exist; it will be made\n");
	return false;
}

/* Empty the rings of an earlier pair. Their slots need not be cleared. */
static void make(struct link_file *file)
{
	for (int side = 0; side < 2; side++) {
		atomic_store(&file->rings[side].head, 0);
		atomic_store(&file->rings[side].tail, 0);
		atomic_store(&file->use[side], LINK_NEVER_OPENED);
		atomic_store(&file->at_work[side], 0);
	}
	file->magic = MAGIC;
}

/*
 * Whether an earlier process left the file: this side was open before, or the other one was, by a
 * process that is gone and sent nothing. (What it sent may be for this process.)
 */
static bool is_left_over(struct link_file *file, enum link_side side, int descriptor)
{
	const struct link_ring *sent = &file->rings[!side];

	return atomic_load(&file->use[side]) != LINK_NEVER_OPENED ||
	       (atomic_load(&file->use[!side]) != LINK_NEVER_OPENED &&
		!link_file_is_locked(descriptor, !side) &&
		atomic_load(&sent->head) == atomic_load(&sent->tail));
}

/* Lock a side of a mapped file, and make the file if this is a new pair. */
static bool take_side(struct link_file *file, const char *path, enum link_side side, bool rejoin,
		      int descriptor)
{
	struct link_ring *in = &file->rings[!side];
	struct flock lock = lock_of(F_WRLCK, side);

	if (file->magic != 0 && file->magic != MAGIC)
		return refuse(path, "is not a link");
	if (fcntl(descriptor, F_OFD_SETLK, &lock) < 0)
		return refuse(path, errno == EAGAIN || errno == EACCES
					    ? "this side is open in another process"
					    : strerror(errno));
	if (file->magic == 0) {
		make(file);
	} else if (rejoin && atomic_load(&file->use[side]) != LINK_NEVER_OPENED) {
		atomic_fetch_add(&in->head, atomic_exchange(&file->at_work[side], 0));
	} else if (is_left_over(file, side, descriptor)) {
		if (link_file_is_locked(descriptor, !side))
			return refuse(path, "the other end is still open from an earlier run");
		make(file);
	}
	atomic_store(&file->use[side], LINK_OPEN);
	return true;
}

/* Open a file with the right size, and let only this process make it. -1 after printing why. */
static int open_to_make(const char *path)
{
	struct flock making = lock_of(F_WRLCK, LOCK_MAKING);
	int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (descriptor < 0 || fcntl(descriptor, F_OFD_SETLKW, &making) < 0)
		refuse(path, strerror(errno));
	else if (size_is_right(descriptor, path))
		return descriptor;
	if (descriptor >= 0)
		close(descriptor);
	return -1;
}

struct link_file *link_file_map(const char *path, enum link_side side, bool rejoin,
				int *descriptor)
{
	struct flock made = lock_of(F_UNLCK, LOCK_MAKING);
	struct link_file *file;

	*descriptor = open_to_make(path);
	if (*descriptor < 0)
		return NULL;
	file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
	if (file == MAP_FAILED) {
		refuse(path, strerror(errno));
	} else if (take_side(file, path, side, rejoin, *descriptor)) {
		fcntl(*descriptor, F_OFD_SETLK, &made);
		return file;
	} else {
		munmap(file, sizeof(*file));
	}
	close(*descriptor);
	return NULL;
}

bool link_file_make(const char *path)
{
	int descriptor = open_to_make(path);

	if (descriptor >= 0)
		close(descriptor);
	return descriptor >= 0;
}

void link_file_unmap(struct link_file *file, enum link_side side, int descriptor)
{
	atomic_store(&file->use[side], LINK_LEFT);
	munmap(file, sizeof(*file));
	close(descriptor);
}

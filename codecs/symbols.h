/*
 * Symbols by content id, and the append-only blocks in which stores keep them (design.md 6, storage.md 2.3 plan B).
 *
 * frame id = keyed hash of everything in its definition; stack id = keyed hash of its frame ids, root first; 64 bits,
 * compared only inside one (service, day). A block is one zstd frame with the definitions of some frames and stacks; a
 * stack in it may name frames of an earlier block by id.
 */
#ifndef CODECS_SYMBOLS_H
#define CODECS_SYMBOLS_H

#include "codecs/hash.h"
#include "codecs/profile.h"

/* The symbols of one profile, in memory of their own (survive the profile's arena). */
struct symbols {
    struct mapping *mappings;
    struct function *functions;
    struct frame *frames;
    uint64_t *frame_ids;
    uint32_t *stack_at, *stack_frames;
    uint64_t *stack_ids;
    uint32_t n_mappings, n_functions, n_frames, n_stacks;
    size_t bytes; /* all of it, for the ledger */
};
struct symbols *symbols_seal(const struct profile *p, const struct hash_key *k) MUST_CHECK; /* NULL: no memory */
void symbols_free(struct symbols *s);

/* All of them as bytes, ids included; out->failed says whether memory ran out. */
void symbols_pack(const struct symbols *s, struct buf *out);
/* And back. E_BAD_INPUT for anything else, E_NO_MEMORY. */
enum err symbols_unpack(struct str bytes, struct symbols **out, struct fault *f) MUST_CHECK;

/* A set of ids: what a writer has stored, or wants. Open addressing, keyed already. */
struct idset;
struct idset *idset_new(void) MUST_CHECK;
bool idset_has(const struct idset *s, uint64_t id);
bool idset_add(struct idset *s, uint64_t id) MUST_CHECK; /* false: no memory */
size_t idset_count(const struct idset *s);
size_t idset_bytes(const struct idset *s);
void idset_free(struct idset *s);

/*
 * Writes the block of those frames and stacks of the n symbols that are neither in `known` nor repeated, and adds their
 * ids to `fresh` (put into `known` after the commit). Nothing new: out stays empty. known NULL: everything. false: no
 * memory.
 */
bool symbols_block(const struct symbols *const *list, uint32_t n, const struct idset *known, struct idset *fresh,
                   struct buf *out) MUST_CHECK;

/* What blocks said, by id. Everything lives until symtab_free. One thread at a time. */
struct symtab;
struct symtab *symtab_new(void) MUST_CHECK;
/*
 * From now on only blocks that are of use for these stacks are read, told by the ids in front of them; the others cost
 * next to nothing. Borrowed until symtab_free. Their frames may be defined in blocks that came before: while
 * symtab_lacks, add all again.
 */
void symtab_want(struct symtab *t, const struct idset *stacks);
bool symtab_lacks(const struct symtab *t);
enum err symtab_add(struct symtab *t, struct str block,
                    struct fault *f) MUST_CHECK; /* E_BAD_INPUT: not a block of ours */
struct symframe {
    const struct function *function; /* NULL: a bare address */
    const struct mapping *mapping;   /* NULL: none */
    int64_t line, column;
    uint64_t address;
    uint32_t flags;
};
/* Frames of a stack, root first, into out[0..cap); returns how many the stack has, or SYMTAB_UNKNOWN. A frame whose
 * definition is lost is [unknown]. */
#define SYMTAB_UNKNOWN UINT32_MAX
uint32_t symtab_stack(const struct symtab *t, uint64_t stack_id, const struct symframe **out, uint32_t cap);
/* Every frame that is defined, by number from 0; NULL: no more. */
const struct symframe *symtab_frame(const struct symtab *t, size_t i);
/* The definitions of these stacks, as they came with a profile; unknown ones are left out. NULL: no memory. */
struct symbols *symtab_pick(const struct symtab *t, const uint64_t *stacks, uint32_t n,
                            const struct hash_key *k) MUST_CHECK;
size_t symtab_bytes(const struct symtab *t);
void symtab_free(struct symtab *t);

#endif

/* Numbers by id: open addressing over ids that are keyed hashes already. */
#ifndef CODECS_IDMAP_H
#define CODECS_IDMAP_H

#include "codecs/base.h"

#define IDMAP_NONE UINT32_MAX

struct idmap_slot {
    uint64_t id;
    uint32_t value1; /* value + 1; 0 is a free slot */
};
/* All zero is an empty map. */
struct idmap {
    struct idmap_slot *slots;
    size_t mask, n; /* mask: slots - 1 */
};

/* The value of id, or IDMAP_NONE. */
uint32_t idmap_get(const struct idmap *m, uint64_t id);
/* The value that id has already, else puts `value` (not IDMAP_NONE) there. IDMAP_NONE: no memory. */
uint32_t idmap_add(struct idmap *m, uint64_t id, uint32_t value) MUST_CHECK;
bool idmap_reserve(struct idmap *m, size_t n) MUST_CHECK; /* n more ids need no memory */
size_t idmap_bytes(const struct idmap *m);
void idmap_free(struct idmap *m); /* empty afterwards */

#endif

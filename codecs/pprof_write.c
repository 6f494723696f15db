/*
 * Writing a merge as a gzip pprof. Every message is made in a buffer of its own and put behind the last; strings go out
 * the moment they get their number, which profile.proto allows: only the order among entries of one field counts.
 */
#include "codecs/gzip.h"
#include "codecs/idmap.h"
#include "codecs/merge.h"
#include "codecs/pack.h"

#include <stdlib.h>

/* Field numbers of profile.proto. */
enum {
    P_SAMPLE_TYPE = 1,
    P_SAMPLE,
    P_MAPPING,
    P_LOCATION,
    P_FUNCTION,
    P_STRING,
    P_TIME = 9,
    P_DURATION,
    P_PERIOD_TYPE,
    P_PERIOD
};
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STR, LABEL_NUM, LABEL_UNIT };
enum {
    MAPPING_ID = 1,
    MAPPING_START,
    MAPPING_LIMIT,
    MAPPING_OFFSET,
    MAPPING_FILE,
    MAPPING_BUILD,
    MAPPING_HAS_FUNCTIONS,
    MAPPING_HAS_INLINES = 10
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE, LOCATION_FOLDED };
enum { LINE_FUNCTION = 1, LINE_LINE, LINE_COLUMN };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM, FUNCTION_FILE, FUNCTION_START };

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

/* A mapping as it was first met, by file and build id: where it was loaded elsewhere does not matter. */
struct written_mapping {
    struct mapping m;
    bool bare; /* of some address the function is not known */
};

struct writer {
    const struct symtab *symbols;
    struct hash_key key; /* of this writer's tables only: senders choose names */
    struct buf out, message, inner;
    struct idmap string_of, function_of, location_of, mapping_of;
    uint32_t n_strings, n_functions, n_locations, n_mappings, mappings_cap;
    struct written_mapping *mappings;
    const struct symframe **stack; /* the row's frames, root first */
    uint64_t *locations;           /* and its locations */
    uint32_t stack_cap;
    bool no_memory;
};

static const struct function unknown_function = {
    .name = {"[unknown]", 9}, .system_name = {"[unknown]", 9}, .file = {"", 0}};
static const struct symframe unknown_frame = {.function = &unknown_function};

static void put_key(struct buf *b, unsigned field, unsigned wire)
{
    pack_u64(b, field << 3 | wire);
}

static void put_bytes(struct buf *b, unsigned field, struct str s)
{
    put_key(b, field, WIRE_BYTES);
    pack_str(b, s);
}

/* Zero is what a reader takes an absent number for. */
static void put_number(struct buf *b, unsigned field, uint64_t v)
{
    if (v == 0)
        return;
    put_key(b, field, WIRE_VARINT);
    pack_u64(b, v);
}

/* Puts the message that was made into its parent, and empties it. */
static void put_message(struct buf *to, unsigned field, struct buf *message)
{
    put_bytes(to, field, buf_view(message));
    message->len = 0;
}

static uint32_t number_of(struct writer *w, struct idmap *m, uint64_t id, uint32_t next)
{
    uint32_t n = idmap_add(m, id, next);

    if (n != IDMAP_NONE)
        return n;
    w->no_memory = true;
    return 0;
}

/* Number of a string in the table; the empty one is 0. */
static uint64_t put_string(struct writer *w, struct str s)
{
    if (s.len == 0)
        return 0;
    uint32_t n = number_of(w, &w->string_of, hash64(&w->key, s.p, s.len), w->n_strings);
    if (n == w->n_strings) {
        w->n_strings++;
        put_bytes(&w->out, P_STRING, s);
    }
    return n;
}

static void put_type(struct writer *w, unsigned field, struct str type, struct str unit)
{
    put_number(&w->message, TYPE_TYPE, put_string(w, type));
    put_number(&w->message, TYPE_UNIT, put_string(w, unit));
    put_message(&w->out, field, &w->message);
}

/* Id of a function, 1 and up. May be called while w->message is being made, not while w->inner is. */
static uint64_t put_function(struct writer *w, const struct function *f)
{
    uint64_t of[] = {put_string(w, f->name), put_string(w, f->system_name), put_string(w, f->file),
                     (uint64_t)f->start_line};
    uint32_t n = number_of(w, &w->function_of, hash64(&w->key, of, sizeof of), w->n_functions);

    if (n == w->n_functions) {
        w->n_functions++;
        put_number(&w->inner, FUNCTION_ID, (uint64_t)n + 1);
        put_number(&w->inner, FUNCTION_NAME, of[0]);
        put_number(&w->inner, FUNCTION_SYSTEM, of[1]);
        put_number(&w->inner, FUNCTION_FILE, of[2]);
        put_number(&w->inner, FUNCTION_START, of[3]);
        put_message(&w->out, P_FUNCTION, &w->inner);
    }
    return (uint64_t)n + 1;
}

static bool room_for_mapping(struct writer *w)
{
    if (w->n_mappings < w->mappings_cap)
        return true;
    uint32_t cap = w->mappings_cap ? w->mappings_cap * 2 : 16;
    struct written_mapping *p = realloc(w->mappings, cap * sizeof *p);
    if (!p) {
        w->no_memory = true;
        return false;
    }
    w->mappings = p;
    w->mappings_cap = cap;
    return true;
}

/* NULL: no memory. */
static struct written_mapping *mapping_of(struct writer *w, const struct mapping *m)
{
    uint64_t of[] = {put_string(w, m->file), put_string(w, m->build_id)};

    if (!room_for_mapping(w))
        return NULL;
    uint32_t n = number_of(w, &w->mapping_of, hash64(&w->key, of, sizeof of), w->n_mappings);
    if (n == w->n_mappings)
        w->mappings[w->n_mappings++] = (struct written_mapping){*m, false};
    return w->no_memory ? NULL : &w->mappings[n];
}

static void put_mappings(struct writer *w)
{
    for (uint32_t i = 0; i < w->n_mappings; i++) {
        const struct mapping *m = &w->mappings[i].m;
        put_number(&w->message, MAPPING_ID, (uint64_t)i + 1);
        put_number(&w->message, MAPPING_START, m->start);
        put_number(&w->message, MAPPING_LIMIT, m->limit);
        put_number(&w->message, MAPPING_OFFSET, m->offset);
        put_number(&w->message, MAPPING_FILE, put_string(w, m->file));
        put_number(&w->message, MAPPING_BUILD, put_string(w, m->build_id));
        for (unsigned has = MAPPING_HAS_FUNCTIONS; has <= MAPPING_HAS_INLINES; has++)
            put_number(&w->message, has, !w->mappings[i].bare);
        put_message(&w->out, P_MAPPING, &w->message);
    }
}

static void put_line(struct writer *w, const struct symframe *f)
{
    uint64_t function = put_function(w, f->function);

    put_number(&w->inner, LINE_FUNCTION, function);
    put_number(&w->inner, LINE_LINE, (uint64_t)f->line);
    put_number(&w->inner, LINE_COLUMN, (uint64_t)f->column);
    put_message(&w->message, LOCATION_LINE, &w->inner);
}

/* The location of n frames of which all but the first were inlined; the innermost is its first line. */
static void put_location(struct writer *w, const struct symframe *const *frames, uint32_t n)
{
    const struct symframe *outer = frames[0];
    struct written_mapping *m = outer->mapping ? mapping_of(w, outer->mapping) : NULL;
    uint64_t address = outer->address;

    if (m && !outer->function) {
        m->bare = true;
        address += m->m.start - m->m.offset;
    }
    put_number(&w->message, LOCATION_ID, w->n_locations);
    put_number(&w->message, LOCATION_MAPPING, m ? (uint64_t)(m - w->mappings) + 1 : 0);
    put_number(&w->message, LOCATION_ADDRESS, address);
    for (uint32_t i = n; i-- > 0;)
        if (frames[i]->function)
            put_line(w, frames[i]);
    put_number(&w->message, LOCATION_FOLDED, (outer->flags & FRAME_FOLDED) != 0);
    put_message(&w->out, P_LOCATION, &w->message);
}

/* Id of a location, 1 and up. A frame is the same piece of memory wherever a stack has it, so places do for names. */
static uint64_t location_of(struct writer *w, const struct symframe *const *frames, uint32_t n)
{
    uint32_t l = number_of(w, &w->location_of, hash64(&w->key, frames, n * sizeof *frames), w->n_locations);

    if (l == w->n_locations) {
        w->n_locations++;
        put_location(w, frames, n);
    }
    return (uint64_t)l + 1;
}

/* How many of the n frames are one location: those inlined into the first. */
static uint32_t location_frames(const struct symframe *const *frames, uint32_t n)
{
    uint32_t i = 1;

    while (i < n && frames[0]->function && frames[i]->function && frames[i]->flags & FRAME_INLINED &&
           frames[i]->mapping == frames[0]->mapping && !((frames[i]->flags ^ frames[0]->flags) & FRAME_FOLDED))
        i++;
    return i;
}

static bool room_for_stack(struct writer *w, uint32_t depth)
{
    if (depth <= w->stack_cap)
        return true;
    const struct symframe **stack = realloc(w->stack, depth * sizeof *stack);
    w->stack = stack ? stack : w->stack;
    uint64_t *locations = realloc(w->locations, depth * sizeof *locations);
    w->locations = locations ? locations : w->locations;
    w->no_memory |= !stack || !locations;
    if (!w->no_memory)
        w->stack_cap = depth;
    return !w->no_memory;
}

/* The frames of a stack into w->stack; 0 if there are none, or no memory. */
static uint32_t resolve(struct writer *w, uint64_t id)
{
    uint32_t depth = symtab_stack(w->symbols, id, w->stack, w->stack_cap);

    if (depth == SYMTAB_UNKNOWN) {
        w->stack[0] = &unknown_frame;
        return 1;
    }
    if (depth <= w->stack_cap)
        return depth;
    return room_for_stack(w, depth) ? symtab_stack(w->symbols, id, w->stack, w->stack_cap) : 0;
}

/* Leaf first, as pprof has it. */
static void put_stack(struct writer *w, uint64_t id)
{
    uint32_t depth = resolve(w, id), n = 0;

    for (uint32_t i = 0; i < depth;) {
        uint32_t frames = location_frames(w->stack + i, depth - i);
        w->locations[n++] = location_of(w, w->stack + i, frames);
        i += frames;
    }
    while (n > 0)
        pack_u64(&w->inner, w->locations[--n]);
    put_message(&w->message, SAMPLE_LOCATION, &w->inner);
}

static void put_label(struct writer *w, const struct sample_label *l)
{
    put_number(&w->inner, LABEL_KEY, put_string(w, l->key));
    if (l->numeric) {
        put_key(&w->inner, LABEL_NUM, WIRE_VARINT);
        pack_u64(&w->inner, (uint64_t)l->num);
        put_number(&w->inner, LABEL_UNIT, put_string(w, l->unit));
    } else {
        put_number(&w->inner, LABEL_STR, put_string(w, l->value));
    }
    put_message(&w->message, SAMPLE_LABEL, &w->inner);
}

static void put_sample(struct writer *w, const struct merged *m, uint32_t row)
{
    put_stack(w, m->stack[row]);
    for (uint32_t t = 0; t < m->n_types; t++)
        pack_u64(&w->inner, (uint64_t)m->values[t][row]);
    put_message(&w->message, SAMPLE_VALUE, &w->inner);
    if (m->set)
        for (uint32_t j = m->set_at[m->set[row]]; j < m->set_at[m->set[row] + 1]; j++)
            put_label(w, &m->labels[j]);
    put_message(&w->out, P_SAMPLE, &w->message);
}

static bool going(const struct writer *w)
{
    return !w->no_memory && !w->out.failed && !w->message.failed && !w->inner.failed;
}

static void put_profile(struct writer *w, const struct merged *m)
{
    put_bytes(&w->out, P_STRING, STR(""));
    w->n_strings = 1;
    for (uint32_t t = 0; t < m->n_types; t++)
        put_type(w, P_SAMPLE_TYPE, m->types[t].type, m->types[t].unit);
    for (uint32_t row = 0; row < m->n_rows && going(w); row++)
        put_sample(w, m, row);
    if (going(w))
        put_mappings(w);
    put_number(&w->out, P_TIME, (uint64_t)m->time_ns);
    put_number(&w->out, P_DURATION, (uint64_t)m->duration_ns);
    if (m->period_type.len || m->period_unit.len)
        put_type(w, P_PERIOD_TYPE, m->period_type, m->period_unit);
    put_number(&w->out, P_PERIOD, (uint64_t)m->period);
}

static void writer_free(struct writer *w)
{
    buf_free(&w->out);
    buf_free(&w->message);
    buf_free(&w->inner);
    idmap_free(&w->string_of);
    idmap_free(&w->function_of);
    idmap_free(&w->location_of);
    idmap_free(&w->mapping_of);
    free(w->mappings);
    free(w->stack);
    free(w->locations);
}

enum err pprof_write(const struct merged *m, const struct symtab *symbols, struct buf *out, struct fault *f)
{
    enum { FIRST_DEPTH = 128 };
    struct writer w = {.symbols = symbols};

    hash_key_random(&w.key);
    if (room_for_stack(&w, FIRST_DEPTH))
        put_profile(&w, m);
    bool ok = going(&w) && gzip_pack(buf_view(&w.out), out);
    writer_free(&w);
    return ok ? E_OK : fault_set(f, E_NO_MEMORY, NULL);
}

/*
 * Frames, entries and packed records: what is written comes back, at every byte at which it may be cut and with every
 * bit that may flip it is torn, never something else. With --write FOLDER it writes seeds for test/fuzz/fuzz_spool.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/spool_file.h"
#include "codecs/crc32c.h"
#include "test/oracle/made_profile.h"

static struct record *make_record(uint64_t seed, const char *original)
{
    struct arena *a = arena_new(SIZE_MAX);
    struct recipe recipe = {.seed = seed, .functions = 6, .stacks = 5, .depth = 4, .sets = 2, .samples = 9, .types = 2};
    struct record_origin o = {.format = STR("pprof"),
                              .content_id = {seed, ~seed},
                              .identity = seed % 2,
                              .original = str_of(original),
                              .original_bytes = 99,
                              .keep_original = original != NULL};
    struct hash_key key;

    assert_non_null(a);
    hash_key_derive(&key, STR("entry"));
    struct record *r = record_seal(made_profile(a, &recipe), &o, &key);
    assert_non_null(r);
    arena_free(a);
    return r;
}

static void append(struct buf *segment, const struct buf *payload)
{
    uint8_t head[SPOOL_FRAME_BYTES];

    spool_frame_head(buf_view(payload), head);
    buf_add(segment, head, sizeof head);
    buf_str(segment, buf_view(payload));
    assert_false(segment->failed);
}

/* A segment with a group of n records, its mark, and another group. */
static void make_segment(struct buf *segment, uint16_t n)
{
    struct group g = {.boot = 7, .id = 1, .class_days = 15, .day = 20787, .n = n};
    struct buf payload = {0};

    buf_add(segment, SPOOL_MAGIC, SPOOL_MAGIC_BYTES);
    for (uint16_t i = 0; i < n; i++)
        g.records[i] = make_record(i, i ? NULL : "as it came");
    spool_pack_group(&payload, &g, 1000);
    append(segment, &payload);
    payload.len = 0;
    spool_pack_mark(&payload, &g, 5, 2000);
    append(segment, &payload);
    payload.len = 0;
    g.id = 2;
    g.day = -3;
    spool_pack_group(&payload, &g, 3000);
    append(segment, &payload);
    for (uint16_t i = 0; i < n; i++)
        record_free(g.records[i]);
    buf_free(&payload);
}

static void same_str(struct str a, struct str b)
{
    assert_true(str_eq(a, b));
}

/* Packed again, both are the same bytes; and the parts that stores look at are equal one by one. */
static void same_record(const struct record *a, const struct record *b)
{
    struct buf first = {0}, second = {0};

    record_pack(a, &first);
    record_pack(b, &second);
    same_str(buf_view(&first), buf_view(&second));
    buf_free(&first);
    buf_free(&second);
    same_str(a->series.project, b->series.project);
    same_str(a->series.service, b->series.service);
    same_str(a->body, b->body);
    same_str(a->original, b->original);
    assert_int_equal(a->series_id, b->series_id);
    assert_int_equal(a->time_ns, b->time_ns);
    assert_int_equal(a->content_id.lo, b->content_id.lo);
    assert_int_equal(a->identity, b->identity);
    assert_int_equal(a->symbols->n_stacks, b->symbols->n_stacks);
    for (uint32_t i = 0; i < a->symbols->n_stacks; i++)
        assert_int_equal(a->symbols->stack_ids[i], b->symbols->stack_ids[i]);
    for (uint32_t i = 0; i < a->symbols->n_functions; i++)
        same_str(a->symbols->functions[i].system_name, b->symbols->functions[i].system_name);
}

static void crc_is_castagnoli(void **state)
{
    (void)state;
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void comes_back_whole(void **state)
{
    struct buf segment = {0};
    struct spool_entry e;
    struct str payload;
    struct fault f = {0};
    size_t at;

    (void)state;
    make_segment(&segment, 3);
    buf_add(&segment, "\0\0\0\0\0\0\0\0\0\0", 10); /* what is not used yet */
    assert_int_equal(spool_file_begin(buf_view(&segment), &at), SPOOL_ENTRY);
    assert_int_equal(spool_frame_next(buf_view(&segment), &at, &payload), SPOOL_ENTRY);
    assert_true(spool_entry_read(payload, &e));
    assert_true(e.kind == SPOOL_GROUP && e.group.boot == 7 && e.group.id == 1 && e.group.n == 3 && e.at_ns == 1000);
    assert_int_equal(spool_entry_records(&e, &f), E_OK);
    for (uint16_t i = 0; i < 3; i++) {
        struct record *r = make_record(i, i ? NULL : "as it came");

        same_record(r, e.group.records[i]);
        record_free(r);
        record_free(e.group.records[i]);
    }
    assert_int_equal(spool_frame_next(buf_view(&segment), &at, &payload), SPOOL_ENTRY);
    assert_true(spool_entry_read(payload, &e));
    assert_true(e.kind == SPOOL_MARK && e.told == 5 && e.group.id == 1 && e.group.class_days == 15);
    assert_int_equal(spool_frame_next(buf_view(&segment), &at, &payload), SPOOL_ENTRY);
    assert_true(spool_entry_read(payload, &e) && e.group.day == -3);
    assert_int_equal(spool_frame_next(buf_view(&segment), &at, &payload), SPOOL_END);
    buf_free(&segment);
}

/* How many entries there are before the end, or before what is torn. */
static int entries(struct str segment, enum spool_step *end)
{
    struct str payload;
    size_t at;
    int n = 0;

    *end = spool_file_begin(segment, &at);
    while (*end == SPOOL_ENTRY && (*end = spool_frame_next(segment, &at, &payload)) == SPOOL_ENTRY)
        n++;
    return n;
}

static void cut_anywhere(void **state)
{
    struct buf segment = {0};
    enum spool_step end;
    int last = 0;

    (void)state;
    make_segment(&segment, 2);
    for (size_t len = 0; len <= segment.len; len++) {
        char *exact = malloc(len + 1);

        assert_non_null(exact);
        memcpy(exact, segment.p, len);
        int n = entries((struct str){exact, len}, &end);
        assert_true(n == last || n == last + 1);
        assert_true(end == SPOOL_TORN || len == 0 || len == SPOOL_MAGIC_BYTES || n == last + 1);
        last = n;
        free(exact);
    }
    assert_int_equal(last, 3);
    buf_free(&segment);
}

static void any_flipped_bit(void **state)
{
    struct buf segment = {0};
    enum spool_step end;

    (void)state;
    make_segment(&segment, 1);
    for (size_t bit = 0; bit < segment.len * 8; bit++) {
        segment.p[bit / 8] ^= (char)(1 << bit % 8);
        assert_true(entries(buf_view(&segment), &end) < 3);
        segment.p[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_int_equal(entries(buf_view(&segment), &end), 3);
    buf_free(&segment);
}

static void write_seed(const char *folder, const char *name, char kind, struct str bytes)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fputc(kind, f) == EOF || fwrite(bytes.p, 1, bytes.len, f) != bytes.len || fclose(f) != 0)
        exit(1);
}

static int write_seeds(const char *folder)
{
    struct buf segment = {0}, symbols = {0};
    struct str payload;
    size_t at = SPOOL_MAGIC_BYTES;

    make_segment(&segment, 2);
    write_seed(folder, "segment", 0, buf_view(&segment));
    if (spool_frame_next(buf_view(&segment), &at, &payload) == SPOOL_ENTRY)
        write_seed(folder, "group", 1, payload);
    if (spool_frame_next(buf_view(&segment), &at, &payload) == SPOOL_ENTRY)
        write_seed(folder, "mark", 1, payload);
    struct record *r = make_record(3, NULL);
    symbols_pack(r->symbols, &symbols);
    write_seed(folder, "symbols", 2, buf_view(&symbols));
    record_free(r);
    buf_free(&symbols);
    buf_free(&segment);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(crc_is_castagnoli), cmocka_unit_test(comes_back_whole),
                                       cmocka_unit_test(cut_anywhere), cmocka_unit_test(any_flipped_bit)};

    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_seeds(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The spool's states (backends/spool_store.h) around a store that a test holds in its hand, over real files. */
#include "test/unit/backends/spool_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

/* Instead of libc's: a disk that is full, or that does not write. */
static int fallocate_error, sync_error;
int posix_fallocate(int fd, off_t at, off_t n)
{
    return fallocate_error ? fallocate_error : ftruncate(fd, at + n) == 0 ? 0 : errno;
}
int fdatasync(int fd)
{
    errno = sync_error;
    return sync_error ? -1 : fsync(fd);
}

static void the_ordinary_way_touches_no_file(void **state)
{
    struct spool_world *w = *state;

    for (uint64_t id = 1; id < 20; id++) {
        assert_int_equal(put(w, id, 3), PUT_STORED);
        spool_ops.mark(w->spool, &w->group, 7);
        assert_int_equal(w->inner.n_stored[id], 1);
        assert_int_equal(w->inner.told[id], 7);
    }
    assert_int_equal(stats_of(w).bytes, 0);
    assert_int_equal(stats_of(w).outcomes[SPOOL_OUTCOME_spooled], 0);
    assert_true(spool_ops.healthy(w->spool));
}

static void a_bad_row_is_answered_as_such(void **state)
{
    struct spool_world *w = *state;

    w->inner.bad_place = 1;
    assert_int_equal(put(w, 1, 3), PUT_STORED);
    assert_int_equal(w->group.results[1], PUT_BAD);
    assert_int_equal(w->group.results[2], PUT_STORED);
}

static void a_store_that_stands_still(void **state)
{
    struct spool_world *w = *state;
    uint64_t start = uv_hrtime();

    w->inner.mode = HOLDS;
    start_put(w, 1, 3);
    struct record *first = w->group.records[0];
    assert_int_equal(end_put(w), PUT_STORED);
    assert_true(w->given[0] == first && w->group.records[0] != first); /* the store goes on with its own */
    assert_true(uv_hrtime() - start > AFTER_MS * UINT64_C(1000000) * 9 / 10);
    spool_ops.mark(w->spool, &w->group, 5);
    /* It is known not to answer: the next ones do not wait for it. */
    start = uv_hrtime();
    for (uint64_t id = 2; id < 8; id++) {
        assert_int_equal(put(w, id, 2), PUT_STORED);
        spool_ops.mark(w->spool, &w->group, 1);
    }
    assert_true(stats_of(w).in_use && stats_of(w).groups == 7 && stats_of(w).records == 15);
    assert_int_equal(w->inner.puts, 1);
    UNTIL(w, stats_of(w).groups == 7);
    assert_int_equal(w->inner.marks[1], 0);
    /* It answers after all, and gets the others, in order; what it had counts once by its attempt. */
    w->inner.mode = STORES;
    inner_answer(&w->inner, true);
    UNTIL(w, stats_of(w).groups == 0 && w->inner.marks[7]);
    assert_int_equal(w->inner.n_stored[1], 2);
    for (uint64_t id = 2; id < 8; id++) {
        assert_int_equal(w->inner.n_stored[id], 1);
        assert_int_equal(w->inner.told[id], 1);
        assert_int_equal(w->inner.order[id], id);
    }
    assert_int_equal(w->inner.told[1], 5);
    UNTIL(w, stats_of(w).bytes == 0);
    assert_int_equal(put(w, 8, 1), PUT_STORED);
    assert_int_equal(stats_of(w).outcomes[SPOOL_OUTCOME_replayed], 7);
}

static void a_store_that_turns_away(void **state)
{
    struct spool_world *w = *state;

    w->inner.mode = TURNS_AWAY;
    assert_int_equal(put(w, 1, 4), PUT_STORED);
    assert_int_equal(put(w, 2, 4), PUT_STORED);
    assert_int_equal(stats_of(w).records, 8);
    w->inner.mode = STORES;
    UNTIL(w, stats_of(w).groups == 0);
    assert_true(w->inner.n_stored[1] == 1 && w->inner.n_stored[2] == 1);
}

/* The others, of before and of now, do not wait for it; it is there in the end. */
static void a_group_that_is_always_turned_away(void **state)
{
    struct spool_world *w = *state;
    struct spool *s = (struct spool *)w->spool;

    w->inner.refused_group = 2;
    w->inner.mode = TURNS_AWAY;
    for (uint64_t id = 1; id < 5; id++) {
        assert_int_equal(put(w, id, (uint16_t)id), PUT_STORED);
        spool_ops.mark(w->spool, &w->group, 1);
    }
    w->inner.mode = STORES;
    UNTIL(w, w->inner.n_stored[4] && s->again_ms);
    assert_true(w->inner.n_stored[1] == 1 && w->inner.n_stored[3] == 1 && w->inner.refusals >= 4);
    assert_true(stats_of(w).groups == 1 && stats_of(w).records == 2 && !stats_of(w).in_use);
    assert_int_equal(stats_of(w).outcomes[SPOOL_OUTCOME_put_off], 1);
    assert_int_equal(put(w, 5, 1), PUT_STORED); /* straight to the store */
    assert_int_equal(stats_of(w).outcomes[SPOOL_OUTCOME_spooled], 4);
    UNTIL(w, !s->read.job.busy && !s->tend.job.busy);
    /* Its turn again, in vain; over a restart it stays where it is. */
    int refusals = w->inner.refusals;
    s->again_ms = 1;
    UNTIL(w, w->inner.refusals == refusals + 4 && s->again_ms > 1);
    assert_int_equal(s->again_after_ms, 20000);
    world_close(w);
    w->inner.refused_group = 0;
    world_open(w);
    UNTIL(w, w->inner.n_stored[2] && stats_of(w).bytes == 0);
    assert_true(w->inner.marks[2] && w->inner.told[2] == 1);
}

static void a_store_that_is_away_is_not_asked(void **state)
{
    struct spool_world *w = *state;

    w->inner.away = true;
    assert_true(spool_ops.healthy(w->spool));
    for (uint64_t id = 1; id < 30; id++)
        assert_int_equal(put(w, id, 1), PUT_STORED);
    assert_int_equal(w->inner.puts, 0);
    w->inner.away = false;
    /* While there is something here, clients' groups go straight to the store, between those that are put again. */
    assert_int_equal(put(w, 40, 1), PUT_STORED);
    assert_int_equal(w->inner.n_stored[40], 1);
    assert_true(stats_of(w).groups > 20);
    spool_ops.mark(w->spool, &w->group, 1);
    assert_int_equal(w->inner.told[40], 1);
    UNTIL(w, stats_of(w).groups == 0);
    for (uint64_t id = 1; id < 30; id++)
        assert_int_equal(w->inner.n_stored[id], 1);
}

/* A mark that comes when its group has been put again goes the straight way; one that clears a bit, too. */
static void marks_that_come_late(void **state)
{
    struct spool_world *w = *state;
    struct group first;

    w->inner.away = true;
    assert_int_equal(put(w, 1, 3), PUT_STORED);
    first = w->group;
    spool_ops.mark(w->spool, &first, 7);
    spool_ops.mark(w->spool, &first, 5);
    w->inner.away = false;
    UNTIL(w, w->inner.marks[1] == 2);
    assert_int_equal(w->inner.told[1], 5);
    UNTIL(w, stats_of(w).groups == 0);
    spool_ops.mark(w->spool, &first, 4);
    UNTIL(w, w->inner.marks[1] == 3);
    assert_int_equal(w->inner.told[1], 4);
}

static void what_is_left_is_put_again_by_the_next_process(void **state)
{
    struct spool_world *w = *state;
    struct group first;

    w->inner.away = true;
    for (uint64_t id = 1; id < 10; id++)
        assert_int_equal(put(w, id, 2), PUT_STORED);
    first = w->group;
    spool_ops.mark(w->spool, &first, 3);
    UNTIL(w, !((struct spool *)w->spool)->mark.job.busy);
    world_close(w);
    world_open(w);
    UNTIL(w, stats_of(w).records == 18);
    assert_int_equal(put(w, 20, 1), PUT_STORED); /* of another boot, behind them */
    w->inner.away = false;
    UNTIL(w, stats_of(w).groups == 0);
    for (uint64_t id = 1; id < 10; id++)
        assert_int_equal(w->inner.n_stored[id], 1);
    assert_int_equal(w->inner.n_stored[20], 1);
    UNTIL(w, w->inner.told[9] == 3);
    UNTIL(w, stats_of(w).bytes == 0);
}

/* The store took it, and nobody heard: it is here as well, under the same name. */
static void a_crash_between_put_and_replay(void **state)
{
    struct spool_world *w = *state;

    w->inner.mode = HOLDS;
    assert_int_equal(put(w, 1, 3), PUT_STORED);
    inner_answer(&w->inner, true);
    w->inner.away = true;
    UNTIL(w, !w->inner.held || w->inner.puts == 2);
    if (w->inner.held) /* its replay is under way at the crash */
        inner_answer(&w->inner, true);
    world_close(w);
    w->inner.away = false;
    w->inner.mode = STORES;
    world_open(w);
    UNTIL(w, stats_of(w).groups == 0 && w->inner.n_stored[1] >= 2);
}

static void full_is_turned_away_and_taken_again(void **state)
{
    struct spool_world *w = *state;
    uint64_t id = 1;

    world_close(w);
    w->max_bytes = 256 << 10;
    world_open(w);
    w->inner.away = true;
    while (put(w, id, 4) == PUT_STORED)
        assert_true(++id < 200);
    assert_true(id > 5 && stats_of(w).full && !spool_ops.healthy(w->spool));
    assert_true(stats_of(w).bytes <= w->max_bytes);
    assert_int_equal(put(w, id, 1), PUT_AGAIN);
    assert_int_equal(stats_of(w).outcomes[SPOOL_OUTCOME_full], 2);
    w->inner.away = false;
    UNTIL(w, stats_of(w).groups == 0);
    UNTIL(w, !stats_of(w).full);
    w->inner.away = true;
    assert_int_equal(put(w, id + 1, 4), PUT_STORED);
    for (uint64_t i = 1; i < id; i++)
        assert_int_equal(w->inner.n_stored[i], 1);
}

static void a_disk_without_room(void **state)
{
    struct spool_world *w = *state;

    w->inner.away = true;
    fallocate_error = ENOSPC;
    w->inner.mode = TURNS_AWAY;
    assert_int_equal(put(w, 1, 4), PUT_AGAIN);
    assert_int_equal(w->inner.puts, 1); /* nothing waits here that would find out that it is back */
    assert_int_equal(stats_of(w).outcomes[SPOOL_OUTCOME_no_space], 1);
    assert_true(stats_of(w).full && !stats_of(w).bytes);
    w->inner.mode = STORES;
    assert_int_equal(put(w, 2, 4), PUT_STORED);
    assert_int_equal(w->inner.n_stored[2], 1);
    fallocate_error = 0;
    assert_int_equal(put(w, 3, 4), PUT_STORED);
    assert_true(!stats_of(w).full);
}

static void a_disk_that_does_not_write(void **state)
{
    struct spool_world *w = *state;

    w->inner.away = true;
    assert_int_equal(put(w, 1, 4), PUT_STORED);
    sync_error = EIO;
    assert_int_equal(put(w, 2, 4), PUT_AGAIN);
    assert_int_equal(stats_of(w).outcomes[SPOOL_OUTCOME_failed], 1);
    sync_error = 0;
    assert_int_equal(put(w, 3, 4), PUT_STORED);
    w->inner.away = false;
    UNTIL(w, stats_of(w).groups == 0);
    assert_true(w->inner.n_stored[1] == 1 && w->inner.n_stored[3] == 1);
}

/* No room, and the store still has it: its answer is the answer, however late. */
static void no_room_while_the_store_has_it(void **state)
{
    struct spool_world *w = *state;

    for (int stored = 1; stored >= 0; stored--) { /* once turned away, it would not be asked first */
        w->inner.mode = HOLDS;
        fallocate_error = ENOSPC;
        start_put(w, 2 - (uint64_t)stored, 2);
        UNTIL(w, ((struct spool *)w->spool)->caller == CALLER_HELD);
        struct record *mine = w->group.records[0];
        inner_answer(&w->inner, stored);
        assert_ptr_equal(w->group.records[0], mine);
        assert_int_equal(w->group.results[0], stored ? PUT_STORED : PUT_AGAIN);
        for (uint16_t i = 0; i < w->group.n; i++)
            record_free(w->group.records[i]);
        fallocate_error = 0;
    }
}

static char *only_segment(struct spool_world *w, char *path, size_t size)
{
    DIR *d = opendir(w->spool_dir);

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".spool"))
            snprintf(path, size, "%s/%.32s", w->spool_dir, e->d_name);
    closedir(d);
    return path;
}

static void a_torn_tail_is_cut(void **state)
{
    struct spool_world *w = *state;
    char path[160];
    struct stat st;

    w->inner.away = true;
    for (uint64_t id = 1; id < 4; id++)
        assert_int_equal(put(w, id, 2), PUT_STORED);
    world_close(w);
    assert_int_equal(stat(only_segment(w, path, sizeof path), &st), 0);
    assert_int_equal(truncate(path, st.st_size - 10), 0);
    world_open(w);
    UNTIL(w, stats_of(w).corrupt == 1);
    assert_true(stats_of(w).groups == 2 && w->lines);
    w->inner.away = false;
    UNTIL(w, stats_of(w).groups == 0);
    assert_true(w->inner.n_stored[1] == 1 && w->inner.n_stored[2] == 1 && w->inner.n_stored[3] == 0);
    UNTIL(w, stats_of(w).bytes == 0);
}

/* Damage that comes up between writing and reading, in the segment that is being written. */
static void a_flipped_bit_is_found_when_it_is_read(void **state)
{
    struct spool_world *w = *state;
    char path[160];

    w->inner.away = true;
    for (uint64_t id = 1; id < 4; id++)
        assert_int_equal(put(w, id, 2), PUT_STORED);
    int fd = open(only_segment(w, path, sizeof path), O_RDWR);
    assert_true(fd >= 0);
    uint8_t byte;
    assert_int_equal(pread(fd, &byte, 1, 300), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, 300), 1);
    close(fd);
    w->inner.away = false;
    UNTIL(w, stats_of(w).corrupt == 1);
    UNTIL(w, stats_of(w).groups == 0 && stats_of(w).bytes == 0);
    assert_int_equal(w->inner.n_stored[1], 0);
    assert_int_equal(put(w, 5, 1), PUT_STORED);
    w->inner.away = true;
    assert_int_equal(put(w, 6, 1), PUT_STORED);
    assert_int_equal(stats_of(w).groups, 1);
}

static void one_process_to_a_directory(void **state)
{
    struct spool_world *w = *state;
    struct sample_store *first = w->spool;
    struct fault f = {0};

    assert_false(try_open(w, &f));
    assert_non_null(strstr(f.text, "another process"));
    w->spool = first;
}

static void closing_waits_for_a_put_that_was_left(void **state)
{
    struct spool_world *w = *state;

    w->inner.mode = HOLDS;
    assert_int_equal(put(w, 1, 3), PUT_STORED);
    w->closed = false;
    spool_ops.close(w->spool, on_closed, w);
    for (int i = 0; i < 20; i++)
        uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_false(w->closed);
    inner_answer(&w->inner, true);
    UNTIL(w, w->closed);
    w->spool = NULL;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, spool_setup, spool_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_ordinary_way_touches_no_file),
        CASE(a_bad_row_is_answered_as_such),
        CASE(a_store_that_stands_still),
        CASE(a_store_that_turns_away),
        CASE(a_group_that_is_always_turned_away),
        CASE(a_store_that_is_away_is_not_asked),
        CASE(marks_that_come_late),
        CASE(what_is_left_is_put_again_by_the_next_process),
        CASE(a_crash_between_put_and_replay),
        CASE(full_is_turned_away_and_taken_again),
        CASE(a_disk_without_room),
        CASE(a_disk_that_does_not_write),
        CASE(no_room_while_the_store_has_it),
        CASE(a_torn_tail_is_cut),
        CASE(a_flipped_bit_is_found_when_it_is_read),
        CASE(one_process_to_a_directory),
        CASE(closing_waits_for_a_put_that_was_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Marks on their way into their files: alone, in a transaction that does not wait for the disk, or riding in a put's.
 */
#include <stdlib.h>

#include "backends/sqlite_store.h"

enum { UNMARKED_MAX = 4096 };

bool sqlite_put_marks(struct sample_store *s, struct file *t, const struct mark_job *marks)
{
    for (const struct mark_job *m = marks; m; m = m->next) {
        struct db_stmt *q = file_stmt(t, FILE_PUT_MARK);

        db_bind_int(q, 1, (int64_t)m->boot);
        db_bind_int(q, 2, (int64_t)m->group);
        db_bind_int(q, 3, (int64_t)m->told);
        if (db_step(q) != DB_DONE)
            return false;
        db_reset(q);
        if (!sqlite_mark_dirty(s, t, m))
            return false;
    }
    return true;
}

void sqlite_free_marks(struct mark_job *marks)
{
    for (struct mark_job *next; marks; marks = next) {
        next = marks->next;
        free(marks);
    }
}

/* Failed marks wait for the next chance; without it the group counts as not told. */
void sqlite_keep_marks(struct sample_store *s, struct mark_job *marks)
{
    for (struct mark_job *next; marks; marks = next) {
        next = marks->next;
        if (s->n_unmarked == UNMARKED_MAX) {
            store_log(s->host, 0, "store=sqlite ev=mark_lost group=%llu", (unsigned long long)marks->group);
            free(marks);
            continue;
        }
        marks->next = s->unmarked;
        s->unmarked = marks;
        s->n_unmarked++;
    }
}

/* Cuts the marks of the first one's file off the list. */
static struct mark_job *cut_file(struct mark_job **list)
{
    struct file_key key = (*list)->key;
    struct mark_job *cut = NULL, **cut_tail = &cut;

    for (struct mark_job **at = list; *at;) {
        struct mark_job *m = *at;

        if (!file_key_eq(m->key, key)) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        m->next = NULL;
        *cut_tail = m;
        cut_tail = &m->next;
    }
    return cut;
}

void sqlite_write_marks(struct sample_store *s, struct mark_job *marks)
{
    struct mark_job *again = s->unmarked;

    s->unmarked = NULL;
    s->n_unmarked = 0;
    while (marks || again) {
        struct mark_job *cut = cut_file(marks ? &marks : &again);
        struct file *t;

        if (!catalog_has(s->catalog, cut->key)) { /* expired meanwhile */
            sqlite_free_marks(cut);
            continue;
        }
        t = sqlite_write_file(s, cut->key);
        if (t && sqlite_begin(t, false) && sqlite_put_marks(s, t, cut) && db_exec(t->db, "COMMIT") == DB_DONE) {
            sqlite_free_marks(cut);
            continue;
        }
        if (t)
            sqlite_give_up(s, t, "mark_failed");
        sqlite_keep_marks(s, cut);
    }
}

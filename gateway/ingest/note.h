/*
 * What the upload ledger will say of a request that sends profiles: noted as it goes, written when it is answered, or
 * when it ends without an answer. Nothing here can fail it; without memory the entry says less.
 */
#ifndef GATEWAY_INGEST_NOTE_H
#define GATEWAY_INGEST_NOTE_H

#include "gateway/ingest/spec.h"
#include "gateway/ingest/verdict.h"

/* How far the upload came: its format, its service, its bytes. u NULL: not begun. */
void note_upload(struct request *r, const struct spec *s, const struct upload *u);
/* One of its profiles, before its record is taken. */
void note_profile(struct request *r, const struct outcome *o);
void note_stored(struct request *r, struct attempt a);
void note_verdict(struct request *r, const struct verdict *v);

/* These do nothing for other requests, and nothing the second time. */
void note_answered(struct request *r, int status);
void note_ended(struct request *r); /* frees what was noted */

#endif

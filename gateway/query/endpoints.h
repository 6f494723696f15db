/* The reads, one function each (api.md, endpoints): writes a->answer, or leaves what went wrong in a->fault. */
#ifndef GATEWAY_QUERY_ENDPOINTS_H
#define GATEWAY_QUERY_ENDPOINTS_H

#include "gateway/query/ask.h"

enum err services_run(struct ask *a) MUST_CHECK;
enum err typelist_run(struct ask *a) MUST_CHECK;
enum err labels_run(struct ask *a) MUST_CHECK; /* names; with a->rest values of that label */
enum err overview_run(struct ask *a) MUST_CHECK;
enum err functions_run(struct ask *a) MUST_CHECK;
enum err flamegraph_run(struct ask *a) MUST_CHECK;
enum err function_run(struct ask *a) MUST_CHECK;
enum err timeline_run(struct ask *a) MUST_CHECK;
enum err profiles_run(struct ask *a) MUST_CHECK;
enum err profile_run(struct ask *a) MUST_CHECK; /* a->rest is the id, also of the next two */
enum err original_run(struct ask *a) MUST_CHECK;
enum err download_profile_run(struct ask *a) MUST_CHECK;
enum err download_merge_run(struct ask *a) MUST_CHECK;
enum err uploads_run(struct ask *a) MUST_CHECK;
enum err rulelist_run(struct ask *a) MUST_CHECK;

/* gzip pprof of the selection into the answer, as an attachment; of one type or of all. */
enum err download_pprof(struct ask *a, bool all_types) MUST_CHECK;

#endif

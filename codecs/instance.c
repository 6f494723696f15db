/* The one table of labels that name an instance, by what clients send (SDKs, Alloy and Prometheus, OTel, Kubernetes).
 */
#include "codecs/instance.h"

/* Lower case, without separators. */
static const char *const instance_labels[] = {
    /* Kubernetes, Prometheus' and Alloy's relabelling */
    "pod",
    "podname",
    "poduid",
    "podip",
    "podtemplatehash",
    "controllerrevisionhash",
    "statefulsetkubernetesiopodname",
    "kubernetespodname",
    "kubernetespoduid",
    "node",
    "nodename",
    "kubernetesnode",
    "kubernetesnodename",
    "instance",
    "instanceid",
    "instancename",
    "address",
    "replica",
    "replicaname",
    /* OpenTelemetry's resources, dots or underscores */
    "k8spodname",
    "k8spoduid",
    "k8spodip",
    "k8spodhostname",
    "k8spodstarttime",
    "k8snodename",
    "k8snodeuid",
    "k8scontainerrestartcount",
    "containerid",
    "containerimageid",
    "containerruntimeid",
    "serviceinstanceid",
    "hostname",
    "hostid",
    "hostip",
    "hostmac",
    "processpid",
    "processparentpid",
    "processcreationtime",
    "processstarttime",
    "processruntimeid",
    "cloudresourceid",
    "faasinstance",
    /* machines and processes, as people and SDKs name them */
    "host",
    "ip",
    "ipaddress",
    "hostaddress",
    "pid",
    "ppid",
    "processid",
    "tid",
    "threadid",
    "sessionid",
    "machineid",
    "machine",
    "server",
    "serveraddress",
    "fqdn",
    "bootid",
    "vm",
    "vmid",
    "vmname",
    "ec2instanceid",
    "dyno",
    "allocid",
    "taskid",
    "taskarn",
    "ecstaskid",
    "ecstaskarn",
    "workerid",
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_separator(char c)
{
    return c == '.' || c == '_' || c == '-' || c == '/';
}

static bool same(struct str name, const char *plain)
{
    for (size_t i = 0; i < name.len; i++) {
        if (is_separator(name.p[i]))
            continue;
        if (lower(name.p[i]) != *plain++)
            return false;
    }
    return !*plain;
}

bool label_is_instance(struct str name)
{
    for (size_t i = 0; i < COUNTOF(instance_labels); i++)
        if (same(name, instance_labels[i]))
            return true;
    return false;
}

bool label_left_out(struct str name)
{
    return label_is_instance(name) || label_link(name) != LINK_NONE;
}

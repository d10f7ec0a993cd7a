/** An alert of Prometheus, and its section of the runbook. */
export interface Alert {
  /** Also the title of its section in the runbook. */
  readonly name: string;
  readonly expr: string;
  /** How long it must hold: `5m`. */
  readonly for: string;
  readonly severity: "critical" | "warning";
  readonly summary: string;
  /** With Prometheus' templates: `{{ $labels.module }}`. */
  readonly description: string;
  /** The effect on the cluster, and the remedy: Markdown. */
  readonly remedy: string;
}

/** The alert about unanswered calls comes first. */
export const ALERTS: readonly Alert[] = [
  {
    name: "UsherDown",
    expr: "absent(usher_ready == 1)",
    for: "1m",
    severity: "critical",
    summary: "No replica of usher is ready.",
    description:
      "No replica has been ready for a minute, or none is scraped. Fail-open webhooks let requests pass unchanged; fail-closed ones refuse them.",
    remedy:
      "See [usher is down](#usher-is-down). If replicas are ready and none is scraped, `kubectl -n usher-system get servicemonitors,podmonitors` and the targets page of Prometheus show why.",
  },
  {
    name: "UsherOpened",
    expr: "max(usher_watchdog_opened) > 0",
    for: "0m",
    severity: "critical",
    summary: "The watchdog has opened webhooks, because no replica of usher was ready.",
    description:
      "{{ $value }} webhook configurations have entries that the watchdog has opened, so requests pass without the changes and checks of usher.",
    remedy:
      "See [usher is down](#usher-is-down). An Event of the watchdog and the annotations of both webhook configurations show what was opened, and since when. A ready replica closes the webhooks within 30 seconds. Objects that were admitted in the meantime were not evaluated: `usher placement status` and `usher node-guard inventory` find those that differ.",
  },
  {
    name: "UsherReplicaNotReady",
    expr: "usher_ready == 0",
    for: "15m",
    severity: "warning",
    summary: "A replica of usher is not ready.",
    description: "{{ $labels.pod }} has not been ready for 15 minutes.",
    remedy:
      "`/readyz?verbose` of its ops port, and its log, show what it waits for: resources that it may not read, a certificate that the published CA bundle does not trust, or an API server that does not respond.",
  },
  {
    name: "UsherErrors",
    expr: 'sum by (phase, code) (rate(usher_requests_total{code=~"5.."}[5m])) > 0',
    for: "5m",
    severity: "critical",
    summary: "Usher answers admission requests with errors.",
    description:
      "Usher answers {{ $labels.phase }} requests with HTTP status {{ $labels.code }}; the webhook's failurePolicy then decides.",
    remedy:
      "503: the replica has not read its policies yet, and should not have been called. 500: a fault of usher; the log has `internal error handling admission request` with its cause (see [USHER-E01](#usher-e01)).",
  },
  {
    name: "UsherDecisionsFailed",
    expr: 'sum by (module, rule) (rate(usher_findings_total{outcome="failed"}[10m])) > 0',
    for: "10m",
    severity: "warning",
    summary: "Decisions of a module of usher fail.",
    description:
      "Rule {{ $labels.rule }} of {{ $labels.module }} could not be applied to some requests. The failure mode of the policy or the hook then decides.",
    remedy:
      "The log, the warnings of `kubectl` and the audit annotations have a code; see [error codes](#error-codes).",
  },
  {
    name: "UsherFactsMissing",
    expr: "sum by (hook) (rate(usher_unknown_total[10m])) > 0",
    for: "10m",
    severity: "warning",
    summary: "Usher can't read what it needs for its decisions.",
    description: "Hook {{ $labels.hook }} decides without facts that the API server did not return in time.",
    remedy:
      "Look at the load of the API server, at the priority level `usher` (`apiserver_flowcontrol_*`), and in usher's log for `forbidden`.",
  },
  {
    name: "UsherSlow",
    expr: "histogram_quantile(0.99, sum by (le, phase) (rate(usher_request_duration_seconds_bucket[5m]))) > 0.8",
    for: "10m",
    severity: "warning",
    summary: "Usher is nearly too slow for the timeouts of its webhooks.",
    description:
      "1 % of {{ $labels.phase }} requests take longer than {{ $value | humanizeDuration }}; the shortest timeout is 1 s, most are 2 s.",
    remedy:
      "Compare with the dashboard: if the delay of the event loop is as high, a replica has too little CPU (`kubectl -n usher-system top pods`; add replicas or raise the request); otherwise usher waits for the API server.",
  },
  {
    name: "UsherCallsTimedOut",
    expr: 'sum(rate(usher_requests_total{code="499"}[5m])) > 0',
    for: "5m",
    severity: "critical",
    summary: "API servers stop waiting for usher.",
    description: "API servers disconnect before usher responds, and the webhook's failurePolicy decides.",
    remedy: "As [UsherSlow](#usherslow).",
  },
  {
    name: "UsherEventLoopDelayed",
    expr: 'usher_event_loop_delay_seconds{quantile="0.99"} > 0.25 or usher_main_loop_heartbeat_age_seconds > 5',
    for: "10m",
    severity: "warning",
    summary: "The main thread of a replica of usher is busy.",
    description: "The main thread of {{ $labels.pod }} is late by {{ $value | humanizeDuration }}.",
    remedy:
      "It has too little CPU, or more work than one core can do. `kubectl -n usher-system top pods`; more replicas share the requests. Without a CPU limit, as installed, it is never throttled.",
  },
  {
    name: "UsherCertificateExpiring",
    expr: "usher_certificate_expiry_timestamp_seconds - time() < 7 * 86400",
    for: "1h",
    severity: "critical",
    summary: "The serving certificate of usher expires within a week.",
    description: "The certificate of {{ $labels.pod }} expires in {{ $value | humanizeDuration }}.",
    remedy:
      "Usher renews its own 90 days before; other certificates are renewed by their issuer (`certificates` of the configuration). With `Own`: the leader's log has `failed to reconcile the installation` with the cause; delete the Secret `usher-certificates` to renew immediately. Otherwise look at the Certificate of cert-manager, the service CA operator, or your own Secret.",
  },
  {
    name: "UsherCertificateUntrusted",
    expr: "usher_certificate_trusted == 0",
    for: "5m",
    severity: "critical",
    summary: "API servers do not trust the certificate of usher.",
    description:
      "The published CA bundle does not trust the certificate that {{ $labels.pod }} serves with, so calls of API servers to it fail.",
    remedy:
      "With `certificates: Own`: the leader republishes the bundle within seconds; its log has the error otherwise. With other modes the CA was replaced, and the writer of `caBundle` has not followed: see the log of cert-manager's CA injector or of the service CA operator, or write the new bundle yourself.",
  },
  {
    name: "UsherDrift",
    expr: "max by (object) (usher_object_drift) > 0",
    for: "10m",
    severity: "warning",
    summary: "Objects that usher needs and does not write are not as they should be.",
    description: "{{ $labels.object }} differs in {{ $value }} fields, and usher does not write it.",
    remedy:
      "With `manageWebhooks: false`, apply the output of `usher manifests`, with the same configuration; the leader's log names the fields. If it is ConfigMap `usher-configuration`, it was deleted: running replicas keep theirs, and new ones wait for it. Run `usher install` with the same configuration, or apply it with the tool that deploys usher. If the API server refuses an object of a module, the leader's log has its message, and all other objects are written: change the policy that it is made of.",
  },
  {
    name: "UsherNoLeader",
    expr: "sum(usher_leader) == 0",
    for: "5m",
    severity: "warning",
    summary: "No replica of usher leads.",
    description:
      "Requests are evaluated, but webhook configurations, certificates, node labels and statuses of policies are not maintained.",
    remedy:
      "`kubectl -n usher-system get lease usher -o yaml` shows the last holder; the logs of the replicas have `failed to acquire or renew the lease` with the cause.",
  },
  {
    name: "UsherViewStale",
    expr: "max by (resource) (usher_view_age_seconds) > 120",
    for: "2m",
    severity: "warning",
    summary: "Usher decides by an old state of the cluster.",
    description:
      "A replica has heard nothing about {{ $labels.resource }} for {{ $value | humanizeDuration }}.",
    remedy:
      "Its log has `watch of resource failed` or `failed to list resource` with the cause: an API server that does not respond, or a right that is missing.",
  },
  {
    name: "UsherObjectLeftOut",
    expr: 'sum by (resource) (increase(usher_lists_cut_total{what="object"}[15m])) > 0',
    for: "0m",
    severity: "warning",
    summary: "Usher does not read an object, because it is too large.",
    description: "Usher leaves out an object of {{ $labels.resource }} that is too large to be read.",
    remedy:
      "The log has `object is too large to be read, it is left out of a list` with its namespace and name. An API server with the usual limits stores no such object; make it smaller, or delete it. Until then it is in no drift scan, preview or view.",
  },
  {
    name: "UsherPoliciesInvalid",
    expr: 'max by (module) (usher_policy_problems{severity="error"}) > 0',
    for: "10m",
    severity: "warning",
    summary: "Policies of usher are invalid.",
    description:
      "{{ $value }} errors in policies of {{ $labels.module }}: their invalid parts have no effect.",
    remedy:
      "The condition `Valid` in the status of each policy, and the leader's log (`stored policy is not valid`), name field and error. `usher review FILE --source DIR` checks a policy before it is applied.",
  },
  {
    name: "UsherWritesFailing",
    expr: "max by (module) (usher_plan_items_failing) > 0",
    for: "15m",
    severity: "warning",
    summary: "Usher can't write objects of a module.",
    description: "{{ $value }} objects of {{ $labels.module }} can't be written; usher tries again.",
    remedy:
      "The leader's log names object and cause: a right that is missing, another webhook that refuses, or another controller that changes the same field.",
  },
  {
    name: "UsherEventsDropped",
    expr: "increase(usher_events_dropped_total[30m]) > 0",
    for: "0m",
    severity: "warning",
    summary: "Usher could not write Events.",
    description: "{{ $labels.pod }} dropped Events. Decisions are not affected.",
    remedy:
      "API servers refused them or were too slow: look at their load, and in usher's log for `forbidden`. Where no certificate [verifies callers](serving.md#restricting-callers), it may also be more than 200 at once in one namespace, or reviews about objects that do not exist.",
  },
  {
    name: "UsherLimitsReached",
    expr: "sum by (limit) (increase(usher_connections_closed_total[10m])) > 0",
    for: "0m",
    severity: "warning",
    summary: "Usher closes connections that exceed its limits.",
    description: "Connections were closed because of too many {{ $labels.limit }}.",
    remedy:
      "API servers stay far below the [limits](serving.md#limits), so another client calls the webhook port. Let a NetworkPolicy admit only the API servers.",
  },
  {
    name: "UsherReservationsUnused",
    // Three in 35 s keep a user with a limit of three from creating projects: 50 in ten minutes.
    expr: "sum(increase(usher_project_limit_unused_reservations_total[10m])) > 30",
    for: "0m",
    severity: "warning",
    summary: "Places for projects are reserved, and no project is created.",
    description:
      "More than 30 places were released in ten minutes because no project was created within 35 seconds: users may be refused in the meantime.",
    remedy:
      "Another webhook refuses the creations, a client requests existing names, or no API server sent the reviews: a client that saw the [path](serving.md#restricting-callers) of a webhook fail can forge some. `kubectl get projectusages` shows the users of the places, and the API server's audit log shows whether they were requested. Let a NetworkPolicy [admit only the API servers](../src/modules/project-limit/README.md#before-you-begin), or require client certificates.",
  },
];

/** The rules as Prometheus reads them. `runbook`: the address of the runbook. */
export function ruleGroups(runbook: string) {
  return [
    {
      name: "usher",
      rules: ALERTS.map(({ name, expr, for: lasting, severity, summary, description }) => ({
        alert: name,
        expr,
        for: lasting,
        labels: { severity },
        annotations: { summary, description, runbook_url: `${runbook}#${name.toLowerCase()}` },
      })),
    },
  ];
}

// A view that a module declares: rows that can be sorted, grouped, filtered and opened.
import type { ShownRow, Table, TableCell, TableDetail } from "../model.ts";
import {
  Badge,
  Busy,
  count,
  Empty,
  Failure,
  Icon,
  ObjectLink,
  Select,
  TextField,
  ToneMark,
  useShown,
} from "./parts.tsx";
import { change, parameter, policiesChanged, useData } from "./state.ts";

export function TableView({ name }: { readonly name: string }) {
  const { data, error, slow } = useData<Table>(`/api/tables/${encodeURIComponent(name)}`, policiesChanged);
  if (data === undefined)
    return (
      <div class="view">
        <div class="view-main">
          <h1 class="unseen">{name}</h1>
          {error === undefined ? <Busy slow={slow} what="Reading" /> : <Failure error={error} />}
        </div>
      </div>
    );
  return (
    <div class="view">
      <div class="view-main">
        <TableOf table={data} />
      </div>
    </div>
  );
}

function sortValue(cell: TableCell | undefined): string | number {
  return cell?.value ?? cell?.meter?.value ?? cell?.text ?? "";
}

function TableOf({ table }: { readonly table: Table }) {
  const search = parameter("q").trim().toLowerCase();
  const [sortText, order] = parameter("sort").split(".");
  const sortColumn = sortText === undefined || sortText === "" ? -1 : Number(sortText);
  const grouping = table.columns.findIndex(
    ({ title, groups }) => groups === true && title === parameter("by"),
  );
  const groupable = table.columns.filter(({ groups }) => groups === true);
  const rows = table.rows.filter(({ cells, details }) =>
    [...cells.map(({ text }) => text), ...details.map(({ title }) => title)]
      .join("\n")
      .toLowerCase()
      .includes(search),
  );
  if (sortColumn >= 0)
    rows.sort((one, other) => {
      const [a, b] = [sortValue(one.cells[sortColumn]), sortValue(other.cells[sortColumn])];
      const compared =
        typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
      return order === "down" ? -compared : compared;
    });
  const groups = grouping < 0 ? [""] : [...new Set(rows.map(({ cells }) => cells[grouping]?.text ?? ""))];
  const { limit, More } = useShown(200, `${table.name} ${search}`);
  let left = limit;
  return (
    <>
      <header class="view-header">
        <div>
          <h1>{table.title}</h1>
          <p class="muted">{table.summary}</p>
        </div>
        {table.rows.length > 0 && (
          <div class="controls">
            {groupable.length > 0 && (
              <Select
                label="Group by"
                value={parameter("by")}
                choices={[
                  { value: "", title: "Nothing" },
                  ...groupable.map(({ title }) => ({ value: title, title })),
                ]}
                onChange={(by) => change({ by }, true)}
              />
            )}
            <TextField
              label="Filter"
              value={parameter("q")}
              placeholder="Any text"
              onInput={(q) => change({ q }, true)}
            />
          </div>
        )}
      </header>
      {table.note !== undefined && <p class="notice warning">{table.note}.</p>}
      {table.figures.length > 0 && (
        <dl class="figures">
          {table.figures.map(({ title, value, tone }) => (
            <div class="figure">
              <dt>{title}</dt>
              <dd>
                <span class="figure-value">{value}</span>
                {(tone === "warning" || tone === "bad") && value !== "0" && <ToneMark tone={tone} />}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {table.rows.length === 0 && <Empty title="Nothing to show">{table.empty}</Empty>}
      {table.rows.length > 0 && rows.length === 0 && <Empty title="No row matches the filter" />}
      {groups.map((group) => {
        const all = grouping < 0 ? rows : rows.filter(({ cells }) => (cells[grouping]?.text ?? "") === group);
        const shown = all.slice(0, Math.max(0, left));
        left -= shown.length;
        if (shown.length === 0) return null;
        return (
          <section>
            {grouping >= 0 && (
              <h2 class="group-title">
                {group === "" ? "None" : group} <span class="number muted">{count(all.length)}</span>
              </h2>
            )}
            <div
              class="table-box"
              role="region"
              tabIndex={0}
              aria-label={`${table.title}${group === "" ? "" : `: ${group}`}`}
            >
              <table>
                <thead>
                  <tr>
                    {table.columns.map(({ title, align }, index) => (
                      <th
                        scope="col"
                        class={align}
                        aria-sort={
                          sortColumn !== index ? undefined : order === "down" ? "descending" : "ascending"
                        }
                      >
                        <button
                          type="button"
                          onClick={() =>
                            change(
                              {
                                sort:
                                  sortColumn === index && order !== "down" ? `${index}.down` : `${index}.up`,
                              },
                              true,
                            )
                          }
                        >
                          {title}
                          {sortColumn === index && (
                            <span class={order === "down" ? "sorted down" : "sorted"} aria-hidden="true" />
                          )}
                        </button>
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {shown.map((row) => (
                    <Row key={row.key} row={row} table={table} />
                  ))}
                </tbody>
              </table>
            </div>
          </section>
        );
      })}
      <More total={rows.length} noun="rows" />
    </>
  );
}

function Row({ row, table }: { readonly row: ShownRow; readonly table: Table }) {
  const open = parameter("row") === row.key;
  const toggle = () => change({ row: open ? undefined : row.key }, true);
  const opens = row.details.length > 0;
  return (
    <>
      <tr class={`${opens ? "opens" : ""}${open ? " open" : ""}`} onClick={opens ? toggle : undefined}>
        {row.cells.map((cell, index) => {
          const align = table.columns[index]?.align ?? "start";
          if (index > 0)
            return (
              <td class={align}>
                <CellText cell={cell} row={row} />
              </td>
            );
          return (
            <th scope="row" class={align}>
              {opens ? (
                <button
                  type="button"
                  class="row-opener"
                  aria-expanded={open}
                  onClick={(event) => {
                    event.stopPropagation();
                    toggle();
                  }}
                >
                  <Icon name={open ? "down" : "right"} />
                  {row.tone === "bad" && <ToneMark tone={row.tone} />}
                  <bdi>{cell.text}</bdi>
                </button>
              ) : (
                <span class="row-opener">
                  <span class="icon" />
                  {row.tone === "bad" && <ToneMark tone={row.tone} />}
                  <bdi>{cell.text}</bdi>
                </span>
              )}
            </th>
          );
        })}
      </tr>
      {open && (
        <tr class="detail-row">
          <td colSpan={table.columns.length}>
            <ul class="details">
              {row.details.map((detail) => (
                <Detail detail={detail} />
              ))}
            </ul>
          </td>
        </tr>
      )}
    </>
  );
}

function CellText({ cell, row }: { readonly cell: TableCell; readonly row: ShownRow }) {
  const tone = cell.tone ?? "none";
  return (
    <>
      {cell.meter !== undefined && <Meter {...cell.meter} tone={cell.tone ?? row.tone} />}
      {(tone !== "warning" && tone !== "bad") || cell.meter !== undefined ? (
        <bdi>{cell.text}</bdi>
      ) : (
        <Badge tone={tone}>{cell.text}</Badge>
      )}
    </>
  );
}

function Meter({
  value,
  max,
  tone,
}: {
  readonly value: number;
  readonly max: number;
  readonly tone: string;
}) {
  const share = max <= 0 ? 1 : Math.min(1, value / max);
  return (
    <svg class={`meter tone-${tone}`} width="96" height="8" aria-hidden="true">
      <rect class="meter-track" width="96" height="8" rx="4" />
      <rect class="meter-value" width={Math.max(share * 96, value > 0 ? 8 : 0)} height="8" rx="4" />
    </svg>
  );
}

function Detail({ detail }: { readonly detail: TableDetail }) {
  return (
    <li class="detail">
      <div class="detail-title">
        {detail.tone !== "none" && <ToneMark tone={detail.tone} />}
        {detail.object === undefined ? (
          <strong>{detail.title}</strong>
        ) : (
          <ObjectLink object={detail.object} />
        )}
      </div>
      {detail.lines.length > 0 && (
        <ul class="plain">
          {detail.lines.map((line) => (
            <li>{line}</li>
          ))}
        </ul>
      )}
      {detail.fixes.length > 0 && (
        <div class="fixes">
          <span class="label">To fix it</span>
          {detail.fixes.map((fix) =>
            fix.startsWith(" ") ? <code class="fix">{fix.slice(1)}</code> : <p>{fix}</p>,
          )}
        </div>
      )}
    </li>
  );
}

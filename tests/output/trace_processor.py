"""Asks Perfetto's trace processor about a trace, and compares it with the same recording as JSON.

    trace_processor.py LIBRARY TRACE JSON

LIBRARY is libtest_trace_processor.so, the trace processor as Debian's chromium-shell has it. Its interface is a C++ class
(base::test::TestTraceProcessorImpl); the strings and vectors that go in and out are laid out here as libc++ has them.
"""

import ctypes
import json
import struct
import sys

PREFIX = '4base4test22TestTraceProcessorImpl'
STRING = 'RKNSt3__112basic_stringIcNS2_11char_traitsIcEENS2_9allocatorIcEEEE'
VECTOR = 'RKNSt3__16vectorIcNS2_9allocatorIcEEEE'


def words(address, count):
    return struct.unpack(f'{count}Q', ctypes.string_at(address, 8 * count))


def string_at(address):
    first = ctypes.string_at(address, 1)[0]
    # Short ones are inside: the length, doubled, and the bytes.
    if first & 1 == 0:
        return ctypes.string_at(address + 1, first >> 1).decode()
    _, size, data = words(address, 3)
    return ctypes.string_at(data, size).decode()


def elements(address):
    """The addresses of a vector's elements, strings or vectors."""
    begin, end, _ = words(address, 3)
    return range(begin, end, 24)


class TraceProcessor:
    def __init__(self, library, trace):
        loaded = ctypes.CDLL(library)
        construct, parse, self.execute = (
            getattr(loaded, name)
            for name in (f'_ZN{PREFIX}C1Ev', f'_ZN{PREFIX}10ParseTraceE{VECTOR}', f'_ZNK{PREFIX}12ExecuteQueryE{STRING}')
        )
        for function in (construct, parse, self.execute):
            function.restype = None
        self.this = ctypes.create_string_buffer(256)
        construct(self.this)
        with open(trace, 'rb') as file:
            content = file.read()
        buffer = ctypes.create_string_buffer(content, len(content))
        begin = ctypes.addressof(buffer)
        status = ctypes.create_string_buffer(64)
        vector = ctypes.create_string_buffer(struct.pack('3Q', begin, begin + len(content), begin + len(content)))
        parse(status, self.this, vector)
        if words(ctypes.addressof(status), 1) != (1,):
            raise SystemExit('the trace processor refuses the trace')

    def query(self, sql):
        """The rows, each a dictionary of strings."""
        text = ctypes.create_string_buffer(sql.encode())
        size = len(text.value)
        string = ctypes.create_string_buffer(struct.pack('3Q', size + 16 | 1, size, ctypes.addressof(text)))
        # The rows and the text of an error.
        result = ctypes.create_string_buffer(256)
        self.execute(result, self.this, string)
        error = string_at(ctypes.addressof(result) + 24)
        if error:
            raise SystemExit(f'{sql}: {error}')
        names, *rows = [[string_at(cell) for cell in elements(row)] for row in elements(ctypes.addressof(result))]
        return [dict(zip(names, row)) for row in rows]


def expected(event):
    """Name and arguments of an event of the JSON."""
    kind = event['kind']
    if kind == 'print':
        values = event.get('values') or {'text': event['text'].strip()}
        return event.get('probe', 'print'), values
    if kind == 'lost':
        return f"{event['records']} records lost so far on CPU {event['cpu']}", {}
    return (f"end, status {event['status']}" if kind == 'end' else event['text']), {}


def key(name):
    """What the processor makes of an argument's name: these would be of a path."""
    return name.translate(str.maketrans('.[]', '___'))


def shown(value):
    if value is None or isinstance(value, (list, dict)):
        return json.dumps(value, separators=(',', ':'))
    return str(value)


def main():
    processor = TraceProcessor(sys.argv[1], sys.argv[2])
    with open(sys.argv[3]) as file:
        _, *events = json.load(file)
    rows = processor.query(
        'select s.ts, s.dur, s.name, s.category, s.arg_set_id, t.tid, t.name as thread, p.pid from slice s '
        'left join thread_track k on s.track_id = k.id left join thread t using (utid) left join process p using (upid) order by s.id'
    )
    arguments = {}
    for row in processor.query("select arg_set_id, key, display_value from args where key like 'debug.%'"):
        arguments.setdefault(row['arg_set_id'], {})[row['key'].removeprefix('debug.')] = row['display_value']
    assert len(rows) == len(events), f'{len(rows)} slices, {len(events)} events'
    # The processor sorts by time.
    order = sorted(range(len(events)), key=lambda index: events[index]['time'])
    kinds = {}
    for row, event in zip(rows, (events[index] for index in order)):
        name, values = expected(event)
        values = {key(name): shown(value) for name, value in values.items()} | {'cpu': str(event['cpu'])}
        assert (row['ts'], row['dur'], row['name'], row['category']) == (str(event['time']), '0', name, event['kind']), (row, event)
        found = arguments[row['arg_set_id']]
        assert found == values, (found, values)
        if 'tid' in event:
            assert (row['tid'], row['pid'], row['thread']) == (str(event['tid']), str(event['pid']), event['comm']), (row, event)
        kinds[event['kind']] = kinds.get(event['kind'], 0) + 1
    wrong = processor.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
    print('trace processor:', ', '.join(f'{kinds[kind]} {kind}' for kind in sorted(kinds)), 'as in the JSON,', len(wrong), 'errors')


main()

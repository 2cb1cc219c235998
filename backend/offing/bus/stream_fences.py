"""The order of what the claims of a run append to its stream, kept in Redis beside the stream.

A claim appends batches with increasing numbers. A batch of an earlier claim is refused, so that a worker that lost its
lease and lives on adds nothing. A batch that was appended before, whose response was lost, is not appended again.
"""

from dataclasses import dataclass
from enum import Enum

BATCHES_PER_EPOCH = 2**24

EPOCHS_PER_CLAIM = 2**9

LAST_ORDER = 2**53 - 1
"""Higher than every batch of a claim. Redis's scripts represent whole numbers up to here."""

APPEND = """
local newest = tonumber(redis.call('get', KEYS[2]) or '-1')
if newest >= tonumber(ARGV[1]) then
  if newest >= tonumber(ARGV[2]) then return 2 end
  return 1
end
local previous = redis.call('get', KEYS[3]) or (redis.call('xlen', KEYS[1]) == 0 and '0' or '')
local last, size, heads, bodies = previous, 0, {}, {ARGV[5]}
for i = 9, #ARGV, 3 do
  last = redis.call('xadd', KEYS[1], 'maxlen', '~', ARGV[4], '*', 'event', ARGV[i], 'data', ARGV[i + 1],
                    'run', ARGV[5], 'claim', ARGV[6], 'step', ARGV[i + 2])
  size = size + #ARGV[i + 1]
  if size <= tonumber(ARGV[8]) then
    heads[#heads + 1] = cjson.encode({last, ARGV[i], tonumber(ARGV[i + 2]), #ARGV[i + 1]})
    bodies[#bodies + 1] = ARGV[i + 1]
  end
end
if size > tonumber(ARGV[8]) then heads, bodies = {}, {} end
redis.call('expire', KEYS[1], ARGV[3])
redis.call('set', KEYS[2], ARGV[1], 'ex', ARGV[3])
redis.call('set', KEYS[3], last, 'ex', ARGV[3])
redis.call('publish', ARGV[7], '{"previous":"' .. previous .. '","claim":' .. ARGV[6] .. ',"events":['
           .. table.concat(heads, ',') .. ']}\\n' .. table.concat(bodies))
return 1
"""
"""Keys: the stream, the fence of the run, and the id of the stream's last event. Arguments: the order of the batch, the
lowest order of a later epoch, seconds for which all are kept, maximum number of events, run, claim, channel, maximum
size of the events in its message, and name, data and superstep of each event.
"""

BEGIN = """
if tonumber(redis.call('get', KEYS[1]) or '-1') < tonumber(ARGV[1]) then
  redis.call('set', KEYS[1], ARGV[1], 'ex', ARGV[2])
end
"""
"""Key: the fence. Arguments: the order, and seconds for which it is kept."""


class Appended(Enum):
    """What became of a batch."""

    ACCEPTED = 1
    """The stream has it."""
    FENCED = 2
    """A later claim of the run has begun. The stream does not get it."""
    UNAVAILABLE = 3
    """Redis did not respond. The batch may be sent again."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The place of a batch among all that may be appended for a run."""

    claim: int
    """The number of the claim that sends it. 0 means that it comes from no claim."""
    order: int
    bound: int
    """The lowest order of a later epoch or claim."""


LAST_BATCH = Batch(0, LAST_ORDER, LAST_ORDER + 1)
"""Ends a stream: no claim appends anything afterwards."""


@dataclass(slots=True)
class BatchCounter:
    """Counts the batches of one epoch of a claim."""

    claim: int
    epoch: int = 0
    _count: int = 0

    def next(self) -> Batch:
        self._count += 1
        return Batch(self.claim, self.first_order + self._count, self.first_order + BATCHES_PER_EPOCH)

    @property
    def first_order(self) -> int:
        """Lower than the order of each batch of this epoch, and higher than those before."""
        return (self.claim * EPOCHS_PER_CLAIM + self.epoch) * BATCHES_PER_EPOCH

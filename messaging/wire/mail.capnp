# SPDX-License-Identifier: BSD-3-Clause
@0xbb8dd55cfb47f150;
# The messages between processes of one run; wire/codec.hpp encodes and decodes them. The
# structs of the same names in messaging/mail explain the fields.
#
# A message is a whole Cap'n Proto stream message, unpacked: a table of segments, and then
# the segments, in words of 8 bytes. The root is an ActorMail or a NodeMail; the header of
# the frame says which. The message does not include the values of tensors. The values
# follow the message, in the form they have in memory.
#
# Numbers are never negative unless a comment says so. An Int32 is below 2^30 and an Int64
# below 2^62, so that no sum of two overflows. Times are nanoseconds, of either sign.
# Readers refuse messages that break these rules.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire::schema");

# -- addresses, positions, actions -----------------------------------------------------

struct Position {
  data @0 :Int32;
  direction @1 :Int32;
  stage @2 :Int32;
  tensor @3 :Int32;
}

struct Address {
  kind @0 :Kind;
  where @1 :Position;  # Of a stage, an optimizer shard, a data source, an expert's host.
  number @2 :Int32;    # Of a scheduler: its rank. Of an expert: in the network's list.

  enum Kind {
    coordinator @0;
    recorder @1;
    scheduler @2;
    stage @3;
    optimizerShard @4;
    expert @5;
    dataSource @6;
  }
}

enum Op {
  forward @0;
  backward @1;
  inputGradient @2;
  weightGradient @3;
  update @4;
  recompute @5;
}

struct Action {
  op @0 :Op;
  direction @1 :Int32;
  stage @2 :Int32;
  microbatch @3 :Int32;
  pair @4 :UInt8;  # 0 none, 1 the first of one, 2 the second
}

# -- messages of actors ----------------------------------------------------------------

struct ActorMail {
  to @0 :Address;

  tensors @1 :List(Int64);
  # The bytes of each tensor that follows the message, a multiple of 4; 0: an empty buffer.
  # In the order of the message's fields; lists of lists one list after another.

  union {
    activation @2 :TensorHeader;
    labels @3 :TensorHeader;
    gradient @4 :TensorHeader;
    letter @5 :Letter;
    explain @6 :Void;
    hold :group { round @7 :Int32; }
    goOn @8 :Void;
    stop @9 :Void;
    proceed :group { evaluated @10 :Int32; }
    stopAfter :group { count @11 :Int32; }
    finished :group { rank @12 :Int32; }
    held :group { rank @13 :Int32; round @35 :Int32; }
    begun :group { rank @14 :Int32; count @15 :Int32; }
    atCheckpoint :group { rank @16 :Int32; batches @17 :Int32; }
    collect @18 :Void;
    snapshot @19 :Snapshot;
    collected @20 :Collected;
    waitingFor @21 :WaitingFor;
    samples @22 :Samples;
    sums @23 :Sums;
    microbatchLoss @24 :MicrobatchLoss;
    versionMade @25 :VersionMade;
    expertLoad @26 :ExpertLoad;
    failed :group { why @27 :Text; }
    save :group { batches @28 :Int32; handOver @31 :Bool; keep @32 :Bool; }
    copied @29 :Copied;
    saved @30 :Saved;
    recall @33 :Copied;
    recalled @34 :Saved;
    updatePart @36 :UpdatePart;
  }
}

struct TensorHeader {
  # The payload is one tensor.
  step @0 :Int32;
  microbatch @1 :Int32;
  pipeline @2 :Int32;
  stage @3 :Int32;
  samples @4 :Int64;
  values @5 :Int64;
  version @6 :Int32;
  call @7 :Int32 = -1;  # Number of the call, if GPUs move the payload. -1: no call.
}

struct Snapshot {
  batches @0 :Int32;
  where @1 :Position;
  parameters @2 :UInt32;  # Tensors.
}

struct Collected {
  where @0 :Position;
  updates @1 :Int64;
  samples @2 :Int64;
  parameters @3 :UInt32;  # Tensors,
  gradients @4 :UInt32;   # followed by these.
}

struct Copied {
  batches @0 :Int32;
  where @1 :Position;
}

struct Saved {
  batches @0 :Int32;
  where @1 :Position;
  updates @2 :Int64;
  ages @3 :List(Int32);  # Of versions: one tensor each,
  state @4 :UInt32;      # followed by these.
}

struct WaitingFor {
  who @0 :Text;
  what @1 :Text;
  on @2 :Text;
  own @3 :Text;
}

# -- messages of meetings --------------------------------------------------------------

struct Letter {
  to @0 :Performer;
  about @1 :MeetingKind;
  kind @2 :Traffic;
  bytes @3 :Int64;

  union {
    collective @4 :Collective;
    rowsToExpert @5 :RowsToExpert;
    rowsFromExpert :group { expert @6 :Int32; }  # One tensor.
    normPart @7 :NormPart;
    clipBy :group { factor @8 :Float64; update @10 :Int32; }
    tiedPart @9 :TiedPart;
  }

  enum MeetingKind {
    shards @0;
    layers @1;
    experts @2;
    directions @3;
    sums @4;
    gathers @5;
    tie @6;
    norm @7;
    servers @8;
  }

  enum Traffic {
    none @0;
    pipeline @1;
    gradients @2;
    parameters @3;
    tensor @4;
    experts @5;
    tied @6;
  }
}

struct Performer {
  role @0 :Role;
  where @1 :Position;
  expert @2 :Int32;  # -1: none.

  enum Role {
    stage @0;
    optimizerShard @1;
    expert @2;
    parameterServer @3;
  }
}

struct Collective {
  # One tensor.
  instance @0 :Int32;
  round @1 :Int32;
  from @2 :Int32;
  to @3 :Int32;
  first @4 :Int32;  # Index of the first chunk,
  count @5 :Int32;  # and number of chunks.
  values @6 :Int64;
  call @7 :Int32 = -1;  # Number of a call, without a tensor. -1: no call.
}

struct RowsToExpert {
  # One tensor.
  what @0 :Action;
  source @1 :Int32;
  rows @2 :Int64;
}

struct NormPart {
  of @0 :Position;
  samples @1 :Int64;
  squares @2 :List(Float64);
  update @3 :Int32;
}

struct TiedPart {
  # One tensor.
  update @0 :Int32;
  of @1 :Position;
  toHead @2 :Bool;
  first @3 :Int64;
  values @4 :Int64;
}

# -- reports ---------------------------------------------------------------------------

struct Samples {
  rank @0 :Int32;
  what @1 :List(MeasuredAction);
}

struct MeasuredAction {
  # 72 bytes; the fields of the action come first.
  op @0 :Op;
  part @1 :Bool;
  endsIn @2 :UInt8;     # Flags: 1 shards, 2 layer, 4 norm, 8 version, 16 experts, 32 tie.
  direction @3 :Int32;
  stage @4 :Int32;
  microbatch @5 :Int32;
  start @6 :Int64;
  end @7 :Int64;
  version @8 :Int32;
  versionsAlive @9 :Int32;
  gradients @10 :Int32;
  stalest @11 :Int32;
  staleness @12 :Int64;
  expert @13 :Int32;    # -1: the stage.
  firstOfPair @14 :Bool;
  secondOfPair @15 :Bool;
  offProcessorTime @16 :Int64;
}

struct Sums {
  rank @0 :Int32;
  busy @1 :Int64;
  firstStart @2 :Int64;  # -1: nothing has run.
  lastEnd @3 :Int64;
  held @4 :Int32;        # May be negative.
  peakHeld @5 :Int32;
  stages @6 :List(Stage);
  offProcessorTime @7 :Int64;

  struct Stage {
    stage @0 :Int32;
    versions @1 :Int32;
    stalest @2 :Int32;
    staleness @3 :Int64;
    gradients @4 :Int64;
  }
}

struct MicrobatchLoss {
  microbatch @0 :Int32;
  samples @1 :Int64;
  loss @2 :Float64;
  correct @3 :Int64;
  ended @4 :Int64;
}

struct UpdatePart {
  where @0 :Position;
  version @1 :Int32;
  samples @2 :Int64;
  squares @3 :Float64;
  rate @4 :Float64;
}

struct VersionMade {
  where @0 :Position;
  version @1 :Int32;
  parameters @2 :UInt32;  # Tensors,
  gradients @3 :UInt32;   # followed by these.
}

struct ExpertLoad {
  microbatch @0 :Int32;
  ofLayer @1 :UInt64;
  rows @2 :List(Int64);
  dropped @3 :Int64;
}

# -- messages between leader and nodes -------------------------------------------------

struct NodeMail {
  union {
    prepare @0 :Prepare;
    prepared :group { machine @1 :Text; gpus @23 :List(Text); kinds @24 :List(Text); ungrouped @25 :Text; facts @26 :List(DecidingFact); }
    refused :group { why @2 :Text; leaves @22 :Bool; lasts @30 :Bool; }
    connect :group { groups @3 :List(Int32); }
    connected :group { ids @4 :List(Data); }
    build :group { ids @5 :List(Data); }
    ready @6 :Void;
    clockProbe :group { lead @7 :Int64; node @8 :Int64; }
    beginRun :group { start @9 :Int64; }
    pauseClock @10 :Void;
    resumeClock @11 :Void;
    beat :group { verdict @12 :Int32; atWork @13 :Text; }  # verdict: 0 to 2
    lostNode :group { node @14 :Int32; why @15 :Text; }
    endRun @16 :Void;
    nodeReport @17 :NodeReport;
    askStatus @18 :Void;
    nodeStatus :group { version @19 :Text; doing @20 :Text; waiting @21 :Int32; }
    askIdentity @27 :Void;
    identity :group { high @28 :UInt64; low @29 :UInt64; }
  }
}

struct DecidingFact {
  name @0 :Text;
  value @1 :Text;
}

struct Prepare {
  version @0 :Text;
  sessionHigh @1 :UInt64;
  sessionLow @2 :UInt64;
  generation @3 :UInt32;
  node @4 :Int32;
  nodes @5 :List(Text);
  places @6 :List(Int32);
  options @7 :Text;
  keep @8 :KeptThings;
  before @9 :Int32;
  older @10 :Int32;
  stateArrays @11 :Int32;
  updates @12 :List(Int64);
  layers @13 :List(Int32);
  failureTimeout @14 :Int64;
}

struct KeptThings {
  record @0 :Bool;
  first @1 :Int64;
  weights @2 :Bool;
  gradients @3 :Bool;
  versions @4 :Bool;
  modelTimes @5 :Bool;
  evaluateEvery @6 :Int32;    # Up to the largest Int32.
  checkpointEvery @7 :Int32;  # Up to the largest Int32.
  steps @8 :Bool;
  watched @9 :Bool;
}

struct NodeReport {
  ranks @0 :List(RankBytes);
  moved @1 :List(Int64);
  envelopes @2 :Int64;
  mostEnvelopes @3 :Int64;
  lateAllocations @4 :Int64;
  sums @5 :Int64;
  sumsAtWork @6 :Int64;
  staleFrames @7 :Int64;

  struct RankBytes {
    rank @0 :Int32;
    peak @1 :Int64;
    parts @2 :List(Int64);
    reserved @3 :Int64;
  }
}

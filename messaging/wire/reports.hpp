// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/control.hpp"
#include "messaging/mail/reports.hpp"
#include "messaging/wire/fields.hpp"

namespace troupe::wire {

// Encoding of messages to the recorder and the coordinator: measures, snapshots and
// parameters. Only the numbers of buffers and arrays are encoded; read() makes empty
// buffers and arrays.

void write(schema::Samples::Builder to, const mail::samples& from);
mail::samples read(schema::Samples::Reader from, read_budget& left);

void write(schema::Sums::Builder to, const mail::sums& from);
mail::sums read(schema::Sums::Reader from, read_budget& left);

void write(schema::MicrobatchLoss::Builder to, const mail::microbatch_loss& from);
mail::microbatch_loss read(schema::MicrobatchLoss::Reader from);

void write(schema::VersionMade::Builder to, const mail::version_made& from);
mail::version_made read(schema::VersionMade::Reader from, read_budget& left);

void write(schema::ExpertLoad::Builder to, const mail::expert_load& from);
mail::expert_load read(schema::ExpertLoad::Reader from, read_budget& left);

void write(schema::Snapshot::Builder to, const mail::snapshot& from);
mail::snapshot read(schema::Snapshot::Reader from, read_budget& left);

void write(schema::Collected::Builder to, const mail::collected& from);
mail::collected read(schema::Collected::Reader from, read_budget& left);

void write(schema::Copied::Builder to, const mail::copied& from);
mail::copied read(schema::Copied::Reader from);

void write(schema::Saved::Builder to, const mail::saved& from);
mail::saved read(schema::Saved::Reader from, read_budget& left);

} // namespace troupe::wire

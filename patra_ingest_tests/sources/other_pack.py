"""A pack for tests only: one endpoint for each shape of answer that the built-in packs lack.

What its requests say is as little as the pack language asks for.
"""

from typing import Any

import yaml

from patra_ingest.registry.pack import Pack, parse_pack
from patra_ingest.registry.pack_file import PackText

_TEXT = """
provenance: {code: others, name: Others, base_url: "https://api.stage.datacite.org"}
rate: {key: others}
endpoints:
  oai:                               # namespaces, deleted headers, a token in an element
    request:
      path: /oai
      query: {verb: ListRecords}
      first: {metadataPrefix: oai_dc, from: "${window.from|iso}", until: "${window.last|iso}"}
      next: {resumptionToken: "${page.token}"}
    paging:
      type: TOKEN
      size_policy: SERVER
      next_token: $.oai:OAI-PMH.oai:ListRecords.oai:resumptionToken
      total:
        path: $.oai:OAI-PMH.oai:ListRecords.oai:resumptionToken.@completeListSize
        is_estimate: true
      stop: [NO_TOKEN]
    response:
      format: XML
      namespaces:
        oai: http://www.openarchives.org/OAI/2.0/
        dc: http://purl.org/dc/elements/1.1/
        oai_dc: http://www.openarchives.org/OAI/2.0/oai_dc/
      items: $.oai:OAI-PMH.oai:ListRecords.oai:record
      id: $.oai:header.oai:identifier
      updated_at: $.oai:header.oai:datestamp
      deleted: {path: $.oai:header.@status, equals: deleted}
      require: [$.oai:OAI-PMH.oai:responseDate]
    fields: {title: $.oai:metadata.oai_dc:dc.dc:title}
    errors:
      - {when: {path: $.oai:OAI-PMH.oai:error.@code, equals: noRecordsMatch}, do: EMPTY}
      - {when: {path: $.oai:OAI-PMH.oai:error.@code, equals: badResumptionToken}, do: RESTART_SLICE}
      - {when: {path: $.oai:OAI-PMH.oai:error, exists: true}, do: FATAL}

  atom:                              # arXiv: an offset, a version in the id, an error as an entry
    request: {path: /atom, query: &window {from: "${window.from|iso}", to: "${window.last|iso}"}}
    paging:
      type: OFFSET
      page_size: 10
      size_param: max_results
      offset_param: start
      total: $.a:feed.os:totalResults
      stop: [TOTAL_REACHED, EMPTY_PAGE]
    response:
      format: XML
      namespaces: {a: http://www.w3.org/2005/Atom, os: http://a9.com/-/spec/opensearch/1.1/}
      items: $.a:feed.a:entry
      id: "$.a:id|regex('/abs/(.+)v[0-9]+$')"
      version: "$.a:id|regex('v([0-9]+)$')"
      updated_at: $.a:updated
      require: [$.a:feed.os:totalResults]
    fields: {title: $.a:title|collapse}
    errors:
      - {when: {path: "$.a:feed.a:entry[0].a:title", equals: Error}, do: REJECT}

  dois:                              # DataCite: an address that has lost a parameter
    request: {path: /dois, query: {<<: *window, exclude_registration_agencies: "true"}}
    paging:
      type: URL
      page_size: 25
      size_param: page[size]
      next_url: $.links.next
      restore_params: true
      total: $.meta.total
      stop: [NO_TOKEN]
    response: {items: $.data, id: $.id, updated_at: $.attributes.updated}
    fields: {title: "$.attributes.titles[0].title"}

  papers: &papers                    # Semantic Scholar: the next offset, as a number, is the token
    request: {path: /papers, query: *window}
    paging: &offsets
      type: TOKEN
      page_size: 100
      size_param: limit
      token_param: offset
      initial_token: "0"
      next_token: $.next
      total: $.total
      stop: [NO_TOKEN]
    response: {items: $.data, null_is_empty: true, id: $.paperId}
    changed: HASH
    fields: {title: $.title}

  references:                        # … of which some have no id
    <<: *papers
    paging: {<<: *offsets, page_size: 50}
    response: {items: $.data, id: $.citedPaper.paperId}
    fields: {title: $.citedPaper.title}

  bulk:                              # … and by a token proper, with pages as long as it likes
    <<: *papers
    paging:
      type: TOKEN
      size_policy: SERVER
      token_param: token
      next_token: $.token
      total: $.total
      stop: [NO_TOKEN]

  studies:                           # ClinicalTrials.gov: the first page alone knows the total
    request: {path: /studies, query: *window}
    paging:
      type: TOKEN
      page_size: 5
      size_param: pageSize
      token_param: pageToken
      next_token: $.nextPageToken
      total: {path: $.totalCount, first_page_only: true}
      stop: [NO_TOKEN]
    response: {items: $.studies, id: $.protocolSection.identificationModule.nctId}
    changed: HASH
    fields: {title: $.protocolSection.identificationModule.briefTitle}

  people:                            # ORCID: no hits are null
    request: {path: /search, query: *window}
    paging:
      type: OFFSET
      page_size: 3
      size_param: rows
      offset_param: start
      total: $.num-found
      stop: [TOTAL_REACHED, EMPTY_PAGE]
    response: {items: $.result, null_is_empty: true, id: $.orcid-identifier.path}
    changed: HASH
    fields: {uri: $.orcid-identifier.uri}

  works:                             # ORCID: milliseconds, in an object
    request: {path: /works, query: *window}
    paging: {type: NONE}
    response:
      items: $.group
      id: "$.work-summary[0].put-code"
      updated_at: $.last-modified-date.value
    fields: {title: "$.work-summary[0].title.title.value"}

  publications:                      # USGS: page 1 is shorter than the others
    request: {path: /publication, query: *window}
    paging:
      type: PAGE
      size_policy: FIXED
      page_size: 25
      page_param: page_number
      total: $.recordCount
      stop: [EMPTY_PAGE]
    response: {items: $.records, id: $.id}
    changed: HASH
    fields: {title: $.title}

  solr:                              # PLOS: elements told apart by an attribute
    request: {path: /solr, query: *window}
    paging:
      type: OFFSET
      page_size: 116
      size_param: rows
      offset_param: start
      total: $.response.result.@numFound
      stop: [TOTAL_REACHED]
    response:
      format: XML
      items: $.response.result.doc
      id: "$.str[?(@.@name == 'id')]"
    changed: HASH
    fields: {published: "$.date[?(@.@name == 'publication_date')]"}
"""


def other_pack() -> Pack:
    """Return the pack, read."""
    return parse_pack(PackText("the test's pack", yaml.safe_load(_TEXT), {}))


def other_text(endpoint: str, path: str) -> dict[str, Any]:
    """Return the text of the pack with one endpoint only, which asks for another path."""
    text: dict[str, Any] = yaml.safe_load(_TEXT)
    own = text["endpoints"][endpoint]
    own["request"]["path"] = path
    return {**text, "endpoints": {endpoint: own}}

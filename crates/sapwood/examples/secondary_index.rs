//! A secondary index: people by their number, and in a second table by their city. A transaction keeps both in step.
//!
//! ```sh
//! cargo run -p sapwood --example secondary_index
//! ```

use sapwood::row::Row;
use sapwood::{Db, Direction, OrderedTable, OrderedTableOptions, Result, Rows, key};

#[derive(Row, Debug, PartialEq)]
struct Person {
    #[row(key)]
    id: u32,
    name: String,
    city: String,
}

struct People {
    db: Db,
    by_id: Rows<Person>,
    /// Keys are a city and a number, values are empty: a city may have many people.
    by_city: OrderedTable,
}

impl People {
    fn open(db: Db) -> Result<People> {
        let options = OrderedTableOptions::default();
        let by_city = db.open_or_create_ordered_table("people_by_city", options.clone())?;
        db.open_or_create_ordered_table("people", options.schema(Person::schema()))?;
        Ok(People { by_id: db.rows("people")?.typed()?, by_city, db })
    }

    /// Puts a person. What the index has of another city goes.
    fn put(&self, person: &Person) -> Result<()> {
        self.db.transaction(|tx| {
            let (by_id, by_city) = (tx.rows(&self.by_id), tx.table(&self.by_city));
            if let Some(old) = by_id.get(person.id)? {
                by_city.remove(in_city(&old))?;
            }
            by_id.put(person)?;
            by_city.put(in_city(person), b"")
        })
    }

    /// The people of a city: a range of the index, and a search for each.
    fn of(&self, city: &str) -> Result<Vec<Person>> {
        let mut ids = Vec::new();
        let range = key::prefix_range(key::encode(&city));
        self.by_city.scan_keys(range, Direction::Ascending, |entry| {
            ids.extend(key::decode::<(String, u32)>(entry).map(|(_, id)| id));
        })?;
        let people = ids.into_iter().filter_map(|id| self.by_id.get(id).transpose());
        // Between the two reads a person may have moved away.
        people.filter(|person| !matches!(person, Ok(it) if it.city != city)).collect()
    }
}

fn in_city(person: &Person) -> Vec<u8> {
    key::encode(&(&*person.city, person.id))
}

fn main() -> Result<()> {
    let people = People::open(Db::in_memory())?;
    for (id, name, city) in
        [(1, "Ada", "London"), (2, "Max", "Oslo"), (3, "Eve", "London"), (1, "Ada", "Oslo")]
    {
        people.put(&Person { id, name: name.to_owned(), city: city.to_owned() })?;
    }
    for city in ["London", "Oslo"] {
        let names: Vec<String> = people.of(city)?.into_iter().map(|person| person.name).collect();
        println!("{city}: {}", names.join(", "));
    }
    Ok(())
}

#[test]
fn people_are_found_where_they_live_now() -> Result<()> {
    main()?;
    let people = People::open(Db::in_memory())?;
    let ada = |city: &str| Person { id: 1, name: "Ada".to_owned(), city: city.to_owned() };
    people.put(&ada("London"))?;
    people.put(&ada("Oslo"))?;
    assert_eq!((people.of("London")?, people.of("Oslo")?), (vec![], vec![ada("Oslo")]));
    assert_eq!(people.by_city.len()?, 1);
    Ok(())
}
